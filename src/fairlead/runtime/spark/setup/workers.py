"""The Python worker processes: which interpreter runs Fairlead's functions, and whether it has the required packages.

Spark starts workers with `python3` of the PATH, unless PYSPARK_PYTHON named another interpreter before the session was created.
In an environment that is not activated that is some other Python. If driver and workers share a machine and no interpreter was
chosen, Fairlead's functions run with the driver's. Otherwise workers are as the owner of the cluster set them up. A small job
asks all of them for their packages: once per session, before anything else runs there.

Takes: a session. Gives: how many tasks it runs at once, or a coded error that says what the workers lack. Never: changes which
interpreter runs other functions of the session.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fairlead
from fairlead.errors import FairleadError, UnsupportedError
from fairlead.runtime.spark.setup.jvm import set_worker_python, worker_python
from fairlead.runtime.spark.setup.settings import local_cores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IMPORTED = ("pyarrow", "numpy", "llvmlite", "fairlead")
FOUND = ("pandas", "google.protobuf")
"""Found, not imported: pandas alone takes half a second."""
ASKED = 4096
"""Rows of the asking job, if only their distribution over partitions shows how many tasks run at once."""
APPLICATIONS_MAX = 64
OWN = 'import os, sys; os.environ["PYSPARK_PYTHON"] = sys.executable  # before the session is made'
THEIRS = 'os.environ["PYSPARK_PYTHON"] = "…"  # an interpreter of every worker that has it, before the session is made'
SERVERS = "PYSPARK_PYTHON=/a/python/that/has/it  # in the environment that the server of Spark Connect is started in"
"""How to choose another interpreter: for workers on this machine, on a cluster, and with Spark Connect."""
NO_REPORT = "Python worker failed to connect back"
"""A stream starts interpreters of its own to set up its state: on a busy machine three of them need more than ten seconds."""

_LOCK = threading.Lock()
_TOLD: dict[int, tuple[str, int]] = {}
"""By context: the interpreter that Spark had before, and how many threads create functions now."""
_ANSWERED: dict[tuple[str, str], int] = {}
"""By application and interpreter, how many tasks answered: those whose workers have everything. The others are asked again."""


def is_remote(session_or_frame: object) -> bool:
    """Whether it belongs to Spark Connect: there is no JVM in reach."""
    return type(session_or_frame).__module__.startswith("pyspark.sql.connect.")


def require_workers(spark: SparkSession) -> int:
    """How many tasks run at once. Raises UnsupportedError if workers cannot run Fairlead's functions."""
    with interpreter(spark) as name:
        key = application(spark), name
        if key not in _ANSWERED:
            choice = _choice(spark)
            answers = _asked(spark)
            for each in answers:
                _require(each, choice)
            if len(_ANSWERED) >= APPLICATIONS_MAX:
                _ANSWERED.clear()
            _ANSWERED[key] = len(answers)
        return _ANSWERED[key] if is_remote(spark) else max(1, spark.sparkContext.defaultParallelism)


def _choice(spark: SparkSession) -> str:
    """How the workers of this session get another interpreter."""
    if is_remote(spark):
        return SERVERS
    return OWN if local_cores(str(spark.sparkContext.master)) is not None else THEIRS


def application(spark: SparkSession) -> str:
    """Identifies the application. Sessions of one application can share frames; those of Spark Connect cannot."""
    session: Any = spark
    return str(session.session_id if is_remote(spark) else session.sparkContext.applicationId)


@contextmanager
def interpreter(spark: SparkSession) -> Iterator[str]:
    """Functions that are created inside run with the returned interpreter: the one set in Spark, else the driver's."""
    if is_remote(spark):  # the server chooses
        yield ""
        return
    context = spark.sparkContext
    with _LOCK:  # of several threads the first remembers Spark's interpreter, and the last restores it
        before, users = _TOLD.get(id(context), (worker_python(spark), 0))
        _TOLD[id(context)] = before, users + 1
        chosen = _interpreter(before, str(context.master))
        set_worker_python(spark, chosen)
    try:
        yield chosen
    finally:
        with _LOCK:
            before, users = _TOLD.pop(id(context))
            if users > 1:
                _TOLD[id(context)] = before, users - 1
            else:
                set_worker_python(spark, before)


def _interpreter(told: str, master: str) -> str:
    if local_cores(master) is None or os.environ.get("PYSPARK_PYTHON") or os.sep in told or not sys.executable:
        return told
    found = shutil.which(told)  # if the PATH leads to the same Python, no separate workers are needed
    return told if found is not None and Path(found).parent == Path(sys.executable).parent else sys.executable


def _asked(spark: SparkSession) -> list[dict[str, Any]]:
    from pyspark.sql import functions as F

    question = F.udf(_question(IMPORTED, FOUND, fairlead.__version__), "string", useArrow=False)
    if is_remote(spark):
        rows = spark.range(0, ASKED)
    else:
        cores = max(1, spark.sparkContext.defaultParallelism)
        rows = spark.range(0, cores, 1, cores)
    try:
        found = rows.select(question(F.spark_partition_id()).alias("answer")).distinct().collect()
    except Exception as error:  # Spark's error, or py4j's for errors that have no class in Spark
        known = startup_error(str(error), remote=is_remote(spark))
        if known is None:
            raise
        raise known from None
    return [json.loads(row["answer"]) for row in found]


def _question(imported: tuple[str, ...], found: tuple[str, ...], mine: str) -> Callable[[int], str]:
    def answer(partition: int) -> str:
        """Pickled by value and refers to nothing of Fairlead: it also runs without Fairlead."""
        import importlib
        import importlib.util
        import json
        import sys

        lacks = {}
        for name in (*imported, *found):
            try:
                if name in imported:
                    importlib.import_module(name)
                elif importlib.util.find_spec(name) is None:
                    lacks[name] = f"No module named {name!r}"
            except Exception as problem:  # includes C libraries that do not load
                lacks[name] = str(problem) or type(problem).__name__
        version = getattr(sys.modules.get("fairlead"), "__version__", None)
        if version != mine:  # so that the version shipped later is imported
            for name in [each for each in sys.modules if each.partition(".")[0] == "fairlead"]:
                del sys.modules[name]
        told = {"partition": partition, "executable": sys.executable, "lacks": lacks, "fairlead": version}
        return json.dumps(told, sort_keys=True)

    answer.__module__ = "__main__"
    return answer


def startup_error(text: str, *, remote: bool) -> FairleadError | None:
    """Spark's error for a worker whose interpreter does not start or lacks required packages, as a coded error. `remote`: over
    Spark Connect."""
    choice = SERVERS if remote else OWN
    if "PYTHON_VERSION_MISMATCH" in text:
        here = f"{sys.version_info[0]}.{sys.version_info[1]}"
        problem = f"the workers' Python has another version than the driver's {here}, and Spark needs them to be equal"
        return UnsupportedError("U108", problem, choice)
    program = re.search(r'Cannot run program "([^"]*)"', text)
    if program is not None:
        return UnsupportedError("U108", f"Spark cannot start the workers' Python, {program[1]}", choice)
    missing = re.search(r"ModuleNotFoundError: No module named '(\w+)[\w.]*'", text)
    if missing is not None and missing[1] in ("pyspark", "google", *IMPORTED, *FOUND):
        return UnsupportedError("U109", f"the workers' Python has no {missing[1]}", f"{choice}; or: {_install('python3')}")
    if NO_REPORT in text:
        problem = "a Python worker did not report within ten seconds: Spark allows no more, and has no setting for it"
        fix = "start the job again when the machine is less busy; a stream continues from its checkpoint"
        return UnsupportedError("U116", problem, fix)
    return None


def _require(answer: dict[str, Any], choice: str) -> None:
    """`choice`: how to choose another interpreter."""
    where, lacks, mine = answer["executable"], answer["lacks"], fairlead.__version__
    if lacks:
        problem = f"cannot import {', '.join(lacks)}: {lacks.get('fairlead') or next(iter(lacks.values()))}"
    elif answer["fairlead"] != mine:
        problem = f"has fairlead {answer['fairlead']}, and the driver has {mine}"
    else:
        return
    if set(lacks) <= {"fairlead"}:
        fix = f"fl.ship(spark)  # or: {_install(where)}"
    else:
        fix = f"{OWN}; or: {_install(where)}" if choice is OWN else f"{_install(where)}  # on every worker; or: {choice}"
    raise UnsupportedError("U109", f"the workers' Python, {where}, {problem}", fix)


def _install(executable: str) -> str:
    return f"{executable} -m pip install 'fairlead[spark]=={fairlead.__version__}'"
