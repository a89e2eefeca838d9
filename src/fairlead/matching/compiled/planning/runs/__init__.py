"""What a kernel needs to know of runs: which events they hold, and which values HAVING asks of them."""
