"""Fairlead on Spark: `from fairlead import spark as fl`."""

from fairlead.runtime.spark.api import match

__all__ = ["match"]
