"""The kernel of a sequence: rows of a key side by side, and one suspended search over them."""
