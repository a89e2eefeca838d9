"""The commands on a log: up, declare, publish, tail, export, streams. Each is a file of its own."""
