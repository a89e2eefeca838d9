"""What a kernel needs to know of a folded run: the values that it adds up, and HAVING over them."""
