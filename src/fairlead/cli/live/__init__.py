"""The commands on a log: up, declare, publish, tail, export, streams. One module per command."""
