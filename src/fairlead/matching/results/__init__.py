"""The relations that were found, as columns; objects when somebody looks."""
