"""What matchers remember, as columns and as bytes; checked when it is read."""
