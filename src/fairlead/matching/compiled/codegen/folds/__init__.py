"""The program of a branch whose run is folded."""
