"""Processes that publish and subscribe, and are killed."""
