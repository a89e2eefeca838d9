"""Tables of Arrow, pandas and polars as Columns."""
