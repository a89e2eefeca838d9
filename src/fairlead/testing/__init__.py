"""Shipped to users: the reference matcher, property checkers, the conformance runner and the search for counterexamples."""
