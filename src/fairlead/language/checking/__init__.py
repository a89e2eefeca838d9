"""Syntax tree to plan: names, types of expressions, patterns, clauses."""
