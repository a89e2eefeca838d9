"""A plan on Apache Spark. Here alone pyspark is imported; `installed.py` says what is missing where it cannot be."""
