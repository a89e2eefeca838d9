"""The type checker: expressions as written to typed expressions."""
