"""Fairlead on Spark: `from fairlead import spark as fl`."""

from fairlead.runtime.spark.api import match
from fairlead.runtime.spark.failures import coded_errors, fairlead_error
from fairlead.runtime.spark.job.job_plan import JobPlan, explain
from fairlead.runtime.spark.log.frames import log, register_log, to_log
from fairlead.runtime.spark.output.revisions import current
from fairlead.runtime.spark.output.views import register
from fairlead.runtime.spark.setup.package_zip import ship
from fairlead.runtime.spark.setup.session import session
from fairlead.runtime.spark.stream.progress import Metrics, Snapshot, observed, watch
from fairlead.runtime.spark.stream.resumption import RuleChange

__all__ = [
    "JobPlan", "Metrics", "RuleChange", "Snapshot", "coded_errors", "current", "explain", "fairlead_error", "log", "match",
    "observed", "register", "register_log", "session", "ship", "to_log", "watch",
]  # fmt: skip
