"""Spark: `python -m benchmarks.spark` is the command, benchmarks/README.md says what its numbers mean."""
