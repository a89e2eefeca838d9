"""Frozen values that every other package speaks in: types, events, expressions, plans, relations, guarantees, limits."""
