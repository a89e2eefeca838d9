"""The state of matchers, as columns and as bytes; checked when it is read."""
