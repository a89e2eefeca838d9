"""Kernels of sequences at work, and their state."""
