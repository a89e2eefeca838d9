"""What a job found: folders, and views for SQL."""
