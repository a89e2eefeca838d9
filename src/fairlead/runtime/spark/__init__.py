"""A plan on Apache Spark. Only this package imports pyspark; without it, `installed.py` says what is missing."""
