"""The commands on files and rules, one module per command."""
