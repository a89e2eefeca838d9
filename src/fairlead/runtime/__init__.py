"""Where a plan runs. Today: embedded, in this process."""
