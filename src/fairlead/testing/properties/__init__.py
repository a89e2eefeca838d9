"""The fourteen properties as checkers over traces."""
