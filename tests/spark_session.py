"""One Spark session for all tests that use it, made for short jobs: a small heap, one compiler tier, few partitions.

All tests that use it are of one xdist group (tests/marks.py), so with `--dist loadgroup` one worker process has the one JVM.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault(
    "SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""For every JVM that a test starts: also those of commands, examples and Spark Connect, which take no options of a session. The
classes of Spark are verified at every start, which takes a fifth of the processor time of a JVM that runs a job or two."""
os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", "120")  # a Python worker that starts on a busy machine needs its time
FAST = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": 2,
}
"""A test's jobs end before the optimizing compiler or a parallel collector pays."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session; its files are in a temporary folder and its JVM ends with it."""
    from fairlead.runtime.spark.setup.session import session

    made = session("local[2]", "fairlead tests", **FAST, **{"spark.local.dir": tmp_path_factory.mktemp("spark")})
    yield made
    end(made)


@pytest.fixture(autouse=True)
def active(request: pytest.FixtureRequest) -> None:
    """A test may work in a session beside the one of all; the next one begins in that again."""
    if "spark" in request.fixturenames:
        from pyspark.sql import SparkSession

        made = request.getfixturevalue("spark")
        made._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(made._jsparkSession)
        SparkSession._activeSession = made


def end(session: SparkSession) -> None:
    """Stop the session and wait for its JVM, which pyspark else leaves to the end of the process."""
    from pyspark import SparkContext

    session.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
