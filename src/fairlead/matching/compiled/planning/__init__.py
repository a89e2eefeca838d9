"""What a kernel has to know of a branch: its shape, its indexes, and what they cost."""
