"""Servers, links between them, and how they fail."""
