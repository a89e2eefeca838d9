"""A soak: a steady load for a long time, with failures and retention, after which memory and disks must not have grown."""
