"""The data source `fairlead`: a log as a DataFrame, and relations back into it."""
