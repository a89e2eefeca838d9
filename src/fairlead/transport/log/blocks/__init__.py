"""Blocks: what a log stores. Their format, the check of what a stranger wrote, which a reader wants, how one is stored once."""
