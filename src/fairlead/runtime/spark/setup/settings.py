"""Every setting of Spark that Fairlead makes, in one place, with its reason. Each was seen to change something on Spark 4.3.

Not here, because Spark 4.3 does it anyway: reuse of Python workers (`spark.python.worker.reuse`), a metastore in memory (no
Derby files), and the address of the driver, which follows SPARK_LOCAL_IP.

Takes: a master. Gives: settings as data. Never: imports pyspark or makes a setting.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple


class Setting(NamedTuple):
    """The value and its reason. `needed`: also set in an existing session, unless its owner has set it."""

    value: str
    why: str
    needed: bool = False


_STREAMING = "org.apache.spark.sql.execution.streaming"
SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        "spark.sql.streaming.stateStore.providerClass": Setting(
            f"{_STREAMING}.state.RocksDBStateStoreProvider", "transformWithState supports no other store", needed=True
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": Setting(
            "true", "a batch writes only what changed, not a snapshot of all state", needed=True
        ),
        "spark.sql.execution.arrow.maxRecordsPerBatch": Setting(
            "131072", "kernels run over whole columns: 13 times the rows per call into Python", needed=True
        ),
        "spark.sql.execution.arrow.pyspark.enabled": Setting(
            "true", "pandas tables are converted through Arrow, also on Spark 4.1"
        ),
        "spark.sql.session.timeZone": Setting("UTC", "a TIMESTAMP has no zone, and Spark should print it without one"),
        "spark.ui.enabled": Setting("false", "no web server; set it to true to inspect a slow job"),
        "spark.ui.showConsoleProgress": Setting("false", "no progress bar between the lines of a command"),
    }
)
"""Settings that do not depend on the machine."""

LOCAL_SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        "spark.sql.streaming.checkpointFileManagerClass": Setting(
            f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
            "otherwise Hadoop starts a process per file on a local disk: 130 ms per batch instead of 25",
        ),
        "spark.python.unix.domain.socket.enabled": Setting(
            "true", "on new kernels, two full TCP connections of a worker can block each other for minutes; Unix sockets cannot"
        ),
        "spark.shuffle.compress": Setting("false", "copying blobs through the page cache costs less than compressing them"),
    }
)
"""Settings for a single machine: on HDFS the other file manager has the atomic rename."""

QUIET = r"""rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
# an error with a code is raised where the job was started: of what every part of Spark writes about it, that line
appender.stderr.layout.pattern = %replace{%d{HH:mm:ss} %p %c{1}: %m%n%ex}\
    {(?s)^(\\S+ \\S+ \\S+: ).*(?:fairlead\\.errors\\.\\w+: |RAISED_EXCEPTION\\] (?=D))([A-Z]\\d\\d\\d [^\\n]*\\n).*}{$1$2}
# named as the program that Python starts: without a level of its own it is set to WARN, with three lines that say so
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
"""Log4j configuration from the first line on; `setLogLevel` is applied after Spark's greetings."""

OPTIONS = "spark.driver.extraJavaOptions"
COLLECTOR = "-XX:+UseParallelGC"
MEMORY_GIB = (1, 8)
"""The heap of a local session, which all tasks share: a quarter of the memory, Java's own default, within these limits."""
GIB = 1 << 30


def settings_for(master: str, folder: Path | str) -> dict[str, Setting]:
    """All settings of a new session on that master, which stores its files in that folder."""
    options = f'"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties"'
    made = {
        **SETTINGS,
        "spark.sql.warehouse.dir": Setting(f"{folder}/warehouse", "no spark-warehouse in the working directory"),
        OPTIONS: Setting(options, "errors only, from the first line"),
    }
    cores = local_cores(master)
    if cores is not None:
        made |= LOCAL_SETTINGS
        why = "errors only, from the first line; a garbage collector without a special case for large blobs"
        made[OPTIONS] = Setting(f"{options} {COLLECTOR}", why)
        made["spark.sql.shuffle.partitions"] = Setting(
            str(cores), "one per core, not 200; a stream keeps the number that it started with"
        )
        made["spark.driver.memory"] = Setting(f"{_heap_gib()}g", "a quarter of the memory, 1 to 8 GiB; Spark's default is 1")
    return dict(sorted(made.items()))


def local_cores(master: str) -> int | None:
    """How many tasks run at once on this machine; None for a cluster of others."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if found is not None:
        return _cores() if found[1] == "*" else int(found[1] or 1)
    found = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]", master)
    return int(found[1]) * int(found[2]) if found is not None else None


def explain_settings(master: str = "local[*]") -> list[tuple[str, str, str]]:
    """The settings of a new session on that master: name, value, reason."""
    return [(name, made.value, made.why) for name, made in settings_for(master, "<temporary folder>").items()]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _heap_gib() -> int:
    least, most = MEMORY_GIB
    memory = least * GIB
    with contextlib.suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(ValueError, OSError):  # in a container: the limit, or "max"
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(max(memory // 4 // GIB, least), most)
