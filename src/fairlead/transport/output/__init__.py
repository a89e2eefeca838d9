"""Relations and rejected records as files and CloudEvents."""
