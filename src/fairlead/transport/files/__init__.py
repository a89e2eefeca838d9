"""Files of events and documents: CSV, JSON Lines, Parquet; read in memory that does not grow with them."""
