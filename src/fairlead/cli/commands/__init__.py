"""The commands on files and rules, one a file."""
