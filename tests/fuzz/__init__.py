"""Random cases, each made of one seed: `python -m tests.fuzz` runs them by time, tests/fuzz/test_fuzz.py a few of each.

A module here with `case(seed: int) -> None` is a target: it passes, or it raises. A case depends on its seed alone.
"""
