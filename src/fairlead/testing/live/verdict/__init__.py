"""The conditions that must hold after a run, and whether they do."""
