"""Fairlead on Spark: `from fairlead import spark as fl`."""

from fairlead.runtime.spark.api import match
from fairlead.runtime.spark.failures import coded_errors, fairlead_error
from fairlead.runtime.spark.log import log, register_log, to_log
from fairlead.runtime.spark.progress import Metrics, Snapshot, observed, watch
from fairlead.runtime.spark.resumption import RuleChange
from fairlead.runtime.spark.session import session
from fairlead.runtime.spark.shape import Shape, explain
from fairlead.runtime.spark.ship import ship
from fairlead.runtime.spark.views import register

__all__ = [
    "Metrics", "RuleChange", "Shape", "Snapshot", "coded_errors", "explain", "fairlead_error", "log", "match", "observed",
    "register", "register_log", "session", "ship", "to_log", "watch",
]  # fmt: skip
