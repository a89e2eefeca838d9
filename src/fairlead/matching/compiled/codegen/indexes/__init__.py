"""The indexes of a queue: by hash, and in order."""
