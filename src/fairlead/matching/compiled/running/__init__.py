"""Kernels at work: batches in, matches out."""
