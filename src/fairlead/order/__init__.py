"""Arrivals become one agreed order."""
