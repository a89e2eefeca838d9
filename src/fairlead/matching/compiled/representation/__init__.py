"""What a kernel is made of: formulas, statements, functions; their text; what is in them."""
