"""Events: their types and values, their place in the order, and batches of them as columns."""
