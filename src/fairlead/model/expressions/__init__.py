"""Expressions of rules: their trees, functions and types, and the tests that texts allow."""
