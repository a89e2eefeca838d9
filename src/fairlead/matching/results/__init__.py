"""The relations found, as columns; objects on access."""
