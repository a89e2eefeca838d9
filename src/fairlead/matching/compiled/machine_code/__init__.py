"""Programs to machine code, and machine code as a function."""
