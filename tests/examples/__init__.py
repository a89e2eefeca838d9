"""The examples run, and print what they say they print."""
