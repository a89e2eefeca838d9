"""DataFrames and files of the user as one frame of a known form."""
