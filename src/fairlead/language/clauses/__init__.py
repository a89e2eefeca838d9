"""Clauses with a module of their own: syntax, checks and lint of one in one place. registry.py has all of them."""
