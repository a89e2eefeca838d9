"""What a kernel is made of: expressions, statements, functions; their text; what is in them."""
