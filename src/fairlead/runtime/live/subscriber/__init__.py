"""Subscribing: streams are read, matched by the core, and delivered; progress is recorded in the log."""
