"""Text to syntax tree: the grammar, its tables, the automaton, and the error messages of texts that do not parse."""
