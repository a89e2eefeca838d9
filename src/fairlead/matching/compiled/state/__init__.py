"""What kernels remember, to the common form of states and back."""
