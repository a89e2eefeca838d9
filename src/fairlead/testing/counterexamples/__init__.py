"""The search for counterexamples: which options and clauses lose which property, each with a trace."""
