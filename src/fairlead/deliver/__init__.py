"""Relations to subscribers: receipts that prove agreement."""
