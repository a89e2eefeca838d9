"""The searches of a branch: nested loops over its indexes, and the reduced search by semi-joins."""
