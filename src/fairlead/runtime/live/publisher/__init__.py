"""Publishing: events are checked, collected in blocks, and stored in order, each once."""
