"""Records let in: positions, sequences, types, values; or rejected with a code."""
