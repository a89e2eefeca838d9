"""A plan on unbounded input: state between micro-batches, the frontier, checkpoints, progress."""
