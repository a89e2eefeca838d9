"""The clauses that a branch can have, one module each; clause.py has what everybody asks of any of them."""
