"""Who may ask for what, how often, and how much at once."""
