"""A plan on endless input: state between micro-batches, the frontier, checkpoints, progress."""
