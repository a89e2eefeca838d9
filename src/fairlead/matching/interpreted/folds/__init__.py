"""Branches whose run is folded, event by event."""
