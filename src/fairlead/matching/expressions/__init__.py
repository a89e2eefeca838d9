"""Evaluation of expressions: closures for one relation, columns for many."""
