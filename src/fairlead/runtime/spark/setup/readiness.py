"""Whether a session, which the user may have created, can run a job: checked by `match` before anything starts.

    versions      of pyspark and of the Spark that answers
    one session   that runs: frames of a stopped session, or of two applications, cannot be combined in one job
    workers       their interpreter and its packages (workers.py)
    state store   of a stream: set unless its owner has set another, which is rejected
    partitions    of a stream: a warning if there are many more than it has tasks

No other setting of a session changes the answers: tests/runtime/spark/setup/test_session_matrix.py.

Takes: frames of the user. Gives: their session, made ready. Never: changes a setting that its owner made.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlead.errors import FairleadWarning, UnsupportedError, UsageError
from fairlead.runtime.spark.setup.installed import require_spark, require_version
from fairlead.runtime.spark.setup.settings import SETTINGS
from fairlead.runtime.spark.setup.workers import application, is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORE = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
PARTITIONS_WARNED, IDLE_MAX = 32, 4
"""A stream gets a warning from this many partitions on, if they are more than this many times the useful number."""
ZONE = "spark.sql.session.timeZone"
UTC_ZONES = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "Zulu", "Etc/Zulu", "+00:00", "UTC+00:00", "GMT+00:00", "GMT0"})


def require_session(frames: Any) -> None:
    """Checks that one session created all frames, and that it runs. Other objects are rejected elsewhere."""
    listed = list(frames.values()) if isinstance(frames, Mapping) else [frames]
    sessions = [each.sparkSession for each in listed if hasattr(each, "sparkSession")]
    if not sessions:
        return
    require_spark()
    applications = [_application(each) for each in sessions]
    for each in applications[1:]:
        if each != applications[0]:
            problem = "the frames belong to different Spark applications, and a job runs in one"
            raise UsageError("A404", problem, "create all frames with one session")
    version = str(sessions[0].version)  # the server's version if it is remote
    require_version(version, f"the session runs on Spark {version}", "use a cluster with such a Spark")


def _application(spark: SparkSession) -> str:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    session: Any = spark
    try:
        if not (session.is_stopped if is_remote(spark) else session.sparkContext.defaultParallelism < 1):
            return application(spark)
    except (AttributeError, Py4JError, PySparkException, OSError):  # a stopped context cannot answer
        pass
    raise stopped_error()


def require_store(spark: SparkSession) -> None:
    """Stateful steps need RocksDB; Spark would say so only when the stream starts."""
    found = spark.conf.get(STORE, None)
    if found is not None and found.rpartition(".")[2].startswith("RocksDB"):
        return
    if found is None or STORE not in spark.conf.getAll:  # Spark's default, not the owner's choice
        spark.conf.set(STORE, SETTINGS[STORE].value)
        return
    raise store_error(found.rpartition(".")[2])


def warn_of_partitions(spark: SparkSession, tasks: int, cores: int) -> None:
    """Each micro-batch runs two stateful tasks for every partition, even for empty ones: a stream of some thousand rows with
    Spark's default of 200 takes half a minute for each on two cores."""
    partitions = int(str(spark.conf.get(PARTITIONS)))
    useful = max(tasks, cores)
    if partitions < PARTITIONS_WARNED or partitions <= IDLE_MAX * useful:
        return
    problem = (
        f"a stream of these rules has {tasks} tasks that match, and the session has {partitions} shuffle partitions: every "
        f"micro-batch starts {2 * partitions} stateful tasks, most of which have nothing to do"
    )
    fix = f'spark.conf.set("{PARTITIONS}", {useful})  # before the stream first starts: its checkpoint keeps the number'
    warnings.warn(FairleadWarning("W101", problem, fix), stacklevel=3)


def store_error(found: str) -> UnsupportedError:
    problem = f"the session stores the state of streams in {found}, and stateful steps in Python need RocksDB"
    return UnsupportedError("U114", problem, f'spark.conf.set("{STORE}", "{SETTINGS[STORE].value}")')


def stopped_error() -> UsageError:
    fix = "create the frame again with a running session: spark = fl.session()"
    return UsageError("A403", "the Spark session of the frame has been stopped", fix)


def zone_of(spark: SparkSession) -> str | None:
    """The session's time zone; None if it is UTC."""
    found = str(spark.conf.get(ZONE))
    return None if found in UTC_ZONES else found
