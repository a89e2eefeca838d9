"""Benchmarks with fixed seeds: `python -m benchmarks.kernels` is the command, README.md says what its numbers mean."""
