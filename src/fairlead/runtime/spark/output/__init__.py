"""The results of a job: folders, and views for SQL."""
