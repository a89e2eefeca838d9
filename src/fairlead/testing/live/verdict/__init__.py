"""What must hold when all is over, and whether it does."""
