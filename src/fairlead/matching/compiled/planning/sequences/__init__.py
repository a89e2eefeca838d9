"""Sequences as steps of a small machine, and the values that their conditions keep along a path."""
