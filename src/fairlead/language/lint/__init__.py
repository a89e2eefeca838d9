"""Lint: what is legal but probably not what was meant, one rule a function, each with its W code; all in pipeline.py."""
