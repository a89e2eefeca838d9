"""Lint: what is legal but probably not what was meant, one rule a function, each with its W code."""

from fairlead.language.lint.pipeline import lint

__all__ = ["lint"]
