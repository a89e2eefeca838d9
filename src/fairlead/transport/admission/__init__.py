"""Checks records: positions, sequences, types, values; accepts them, or rejects them with a code."""
