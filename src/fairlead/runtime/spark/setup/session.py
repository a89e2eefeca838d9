"""A Spark session: the running one, or a new one with the settings of `settings.py`.

Takes: a master and settings. Gives: a session. Never: changes a static setting of a running session, or a setting that its
owner has made; never leaves a file in the working directory or a variable of its own in the environment.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.errors import UsageError
from fairlead.runtime.spark.setup.installed import require_spark
from fairlead.runtime.spark.setup.java import java_environment
from fairlead.runtime.spark.setup.jvm import has_context, spark_home
from fairlead.runtime.spark.setup.settings import COLLECTOR, OPTIONS, QUIET, SETTINGS, local_cores, settings_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[*]"


def session(master: str | None = None, app: str = "fairlead", **settings: object) -> SparkSession:
    """The running Spark session, or a new one on `master` (default: all cores of this machine).

    Settings have their Spark names: ``session(**{"spark.driver.memory": "4g"})``. On a running session, settings that can
    change are set; others, and another master, raise A401.
    """
    require_spark()
    wanted = {name: _text(name, value) for name, value in settings.items()}
    running = _running()
    if running is None and "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has read a master and settings already
        running = _submitted(master, app, wanted)
    if running is None:
        return _new(master or MASTER, app, wanted)
    _set(running, master, wanted)
    return running


def _new(master: str, app: str, wanted: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    folder = Path(tempfile.mkdtemp(prefix="fairlead-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "log4j2.properties").write_text(QUIET, encoding="utf-8")
    made = {name: setting.value for name, setting in settings_for(master, folder).items()}
    given = [wanted.get(OPTIONS, ""), os.environ.get("JAVA_TOOL_OPTIONS", ""), os.environ.get("JDK_JAVA_OPTIONS", "")]
    if any(re.search(r"-XX:\+Use\w+GC", each) for each in given):  # Java does not start with two collectors
        made[OPTIONS] = made[OPTIONS].replace(COLLECTOR, "").strip()
    if OPTIONS in wanted:
        wanted = wanted | {OPTIONS: f"{made[OPTIONS]} {wanted[OPTIONS]}"}
    with _environment(_variables(master)):
        return SparkSession.builder.master(master).appName(app).config(map={**made, **wanted}).getOrCreate()


def _variables(master: str) -> dict[str, str]:
    """The environment variables that Spark reads when it starts, and only then. Existing variables stay, except JAVA_HOME."""
    variables = {
        "PYSPARK_PYTHON": sys.executable,  # else `python3` of the PATH runs the workers, which may be another Python
        "SPARK_HOME": spark_home(),  # local-cluster needs it, and it saves starting a Python to find it
    }
    if local_cores(master) is not None:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"  # nobody else can connect, and an unresolvable host name does no harm
    return {name: os.environ.get(name) or value for name, value in variables.items()} | java_environment()


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _running() -> SparkSession | None:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:  # there is none; a context without a session may exist
        return SparkSession.builder.getOrCreate() if has_context() else None


def _submitted(master: str | None, app: str, wanted: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app).config(map={**wanted})
    return (builder.master(master) if master is not None else builder).getOrCreate()


def _set(running: SparkSession, master: str | None, wanted: dict[str, str]) -> None:
    now = running.conf.getAll
    for name, value in wanted.items():
        if now.get(name) != value and _static(running, name):
            problem = (
                f"a Spark session is running with {name}={now.get(name, 'its default')}, which no longer changes to {value}"
            )
            raise UsageError("A401", problem, fix="stop that session first: spark.stop(); or leave the setting out")
    if master is not None and now.get("spark.master", master) != master:
        problem = f"a Spark session is running on {now['spark.master']}, not on {master}"
        raise UsageError("A401", problem, fix="stop that session first: spark.stop(); or leave the master out")
    for name, value in wanted.items():
        if now.get(name) != value:
            running.conf.set(name, value)
    for name, setting in SETTINGS.items():
        if setting.needed and name not in now and name not in wanted:
            running.conf.set(name, setting.value)


def _static(running: SparkSession, name: str) -> bool:
    """Spark also reports "not modifiable" for settings that it does not list, such as those of RocksDB: they can be set."""
    return not name.startswith("spark.sql.streaming.") and not running.conf.isModifiable(name)


def _text(name: str, value: object) -> str:
    if not name.startswith("spark."):
        raise UsageError(
            "A402",
            f"{name!r} is not a Spark setting: its name starts with spark.",
            fix="write it in full, such as **{'spark.driver.memory': '4g'}",
        )
    return str(value).lower() if isinstance(value, bool) else str(value)
