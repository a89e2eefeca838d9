"""Threads that read ahead and write behind."""
