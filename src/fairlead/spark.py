"""Fairlead on Spark: `from fairlead import spark as fl`."""

from fairlead.runtime.spark.api import match
from fairlead.runtime.spark.failures import coded_errors, fairlead_error

__all__ = ["coded_errors", "fairlead_error", "match"]
