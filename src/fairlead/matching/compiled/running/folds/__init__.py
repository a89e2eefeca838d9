"""Kernels of folded runs at work."""
