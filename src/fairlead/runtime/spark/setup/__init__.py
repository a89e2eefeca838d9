"""A session that can run jobs: Java, versions, settings, the workers' interpreter, the package for executors."""
