"""What people see: tables, progress, the summary of a run."""
