"""Text to syntax tree: the grammar, its tables, the automaton, and what is wrong where a text does not parse."""
