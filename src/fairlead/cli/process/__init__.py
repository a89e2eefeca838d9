"""The process of a command: its signals, its standard streams, how it ends."""
