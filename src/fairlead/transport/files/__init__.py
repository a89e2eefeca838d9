"""Files of events and documents: CSV, JSON Lines, Parquet; read in bounded memory."""
