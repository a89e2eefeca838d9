"""What several runtimes make of the same."""
