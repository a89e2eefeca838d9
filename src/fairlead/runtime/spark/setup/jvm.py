"""All of Fairlead's use of pyspark's private interface, in one place.

Private are pyspark's `_jvm`, `_jsparkSession` and `_jdf` (a remote session has no JVM in reach), the classes of Spark's
analyzed plans, the running context, its `pythonExec`, and how pyspark finds its own folder. A test tries each on a session, so
it fails when one of them changes with a new version.

Takes: a session or a frame that is not remote. Gives: plain Python values; for Hadoop's file systems the Java object. Never:
runs a job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLAIN_OPTIONS = {"path", "paths"}
"""Options of a read that do not affect the result."""


def spark_home() -> str:
    """The folder of the Spark that pyspark starts."""
    from pyspark.find_spark_home import _find_spark_home

    return str(_find_spark_home())


def has_context() -> bool:
    """Whether this process has started Spark, and not stopped it."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def worker_python(spark: SparkSession) -> str:
    """The interpreter of the workers, for functions that are created from now on."""
    return str(spark.sparkContext.pythonExec)


def set_worker_python(spark: SparkSession, program: str) -> None:
    spark.sparkContext.pythonExec = program


def make_active(spark: SparkSession) -> None:
    """Make this the active session in the current thread of the JVM; py4j may change the thread."""
    sessions: Any = _machine(spark).org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(_session(spark))


def has_format(spark: SparkSession, name: str) -> bool:
    """Whether the session can read and write that format."""
    source: Any = _machine(spark).org.apache.spark.sql.execution.datasources.DataSource
    try:
        source.lookupDataSource(name, _session(spark).sessionState().conf())
    except Exception:
        return False
    return True


def hadoop_path(spark: SparkSession, path: str) -> Any:
    """Hadoop's Path."""
    return _machine(spark).org.apache.hadoop.fs.Path(path)


def file_system(spark: SparkSession, path: str) -> Any:
    """Hadoop's FileSystem of the path, as the session is configured."""
    return hadoop_path(spark, path).getFileSystem(_session(spark).sessionState().newHadoopConf())


def watermarks(frame: DataFrame, column: str) -> Iterator[tuple[int, int, int]]:
    """The delay, in months, days and microseconds, of each watermark on the column: several in a union. Of nested watermarks,
    the outer one."""
    from py4j.java_gateway import get_field

    todo = [_analyzed(frame)]
    while todo:
        node = todo.pop()
        if _class_of(node) == "EventTimeWatermark" and node.eventTime().name() == column:
            interval = node.delay()  # its parts are fields, and `interval.days` would be a method to call
            months, days, rest = (int(get_field(interval, name)) for name in ("months", "days", "microseconds"))
            yield months, days, rest
        else:
            todo += _listed(node.children())


def is_plain_parquet(frame: DataFrame) -> bool:
    """Whether the frame only reads Parquet files, perhaps some of their columns: without options, partitions or buckets."""
    plan = _analyzed(frame)
    while _class_of(plan) == "Project" and all(_class_of(each) == "AttributeReference" for each in _listed(plan.projectList())):
        plan = plan.child()
    relation = plan.relation() if _class_of(plan) == "LogicalRelation" else None
    if relation is None or _class_of(relation) != "HadoopFsRelation" or relation.fileFormat().toString() != "Parquet":
        return False
    options = {str(name).lower() for name in _listed(relation.options().keys().toSeq())}
    return bool(relation.partitionSchema().isEmpty()) and not relation.bucketSpec().isDefined() and options <= PLAIN_OPTIONS


def _machine(spark: SparkSession) -> Any:
    return spark._jvm


def _session(spark: SparkSession) -> Any:
    return spark._jsparkSession


def _analyzed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _class_of(java: Any) -> str:
    return str(java.getClass().getSimpleName())


def _listed(scala: Any) -> list[Any]:
    return [scala.apply(at) for at in range(scala.size())]
