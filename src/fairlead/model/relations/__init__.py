"""Relations: delivered composite events, their ids, and the table that they make."""
