"""The matcher for one event at a time: no start-up cost, and the same outcome as kernels."""
