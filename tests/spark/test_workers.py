"""Which interpreter runs Fairlead's functions, and for how long."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fairlead.errors import UnsupportedError
from fairlead.runtime.spark.setup import workers


def session(master: str, told: str = "python3") -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec=told, applicationId=master))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another python3 is on the PATH, and nobody chose one."""
    (tmp_path / "python3").write_text("#!/bin/sh\n")
    (tmp_path / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


@pytest.mark.parametrize(
    ("master", "told", "chosen"),
    [
        ("local[2]", "python3", sys.executable),
        ("local", "python3", sys.executable),
        ("local-cluster[2,1,1024]", "python3", sys.executable),
        ("local[2]", "/usr/bin/python3", "/usr/bin/python3"),
        ("spark://host:7077", "python3", "python3"),
        ("yarn", "python3", "python3"),
        ("k8s://host", "python3", "python3"),
    ],
)
@pytest.mark.usefixtures("elsewhere")
def test_the_driver_s_interpreter_is_taken_on_this_machine_where_nobody_chose(master: str, told: str, chosen: str) -> None:
    spark = session(master, told)
    with workers.interpreter(spark) as name:
        assert name == spark.sparkContext.pythonExec == chosen
    assert spark.sparkContext.pythonExec == told


@pytest.mark.usefixtures("elsewhere")
def test_what_somebody_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    with workers.interpreter(session("local[2]")) as name:
        assert name == "python3"


def test_a_path_that_leads_to_the_driver_s_needs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "python3").write_text("#!/bin/sh\n")
    (tmp_path / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with workers.interpreter(session("local[2]")) as name:
        assert name == "python3"


@pytest.mark.usefixtures("elsewhere")
def test_threads_that_overlap_leave_what_was_told() -> None:
    spark = session("local[2]")
    first, second = ExitStack(), ExitStack()
    first.enter_context(workers.interpreter(spark))
    second.enter_context(workers.interpreter(spark))
    first.close()
    assert spark.sparkContext.pythonExec == sys.executable
    second.close()
    assert spark.sparkContext.pythonExec == "python3"


def test_workers_are_asked_once_a_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    ask = workers._asked
    monkeypatch.setattr(workers, "_asked", lambda given: asked.append(given) or ask(given))
    monkeypatch.setattr(workers, "_ANSWERED", {})
    assert workers.require_workers(spark) == 2
    assert workers.require_workers(spark.newSession()) == 2
    assert len(asked) == 1


def test_all_that_a_worker_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    here = workers._question(("fairlead", "nosuch"), ("json", "nosuch.part"), "0.0.0")
    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "fairlead"}
    try:
        answer = json.loads(here(3))
    finally:
        sys.modules.update(kept)  # a worker with another version forgets it
    assert answer["partition"] == 3
    assert answer["executable"] == sys.executable
    assert set(answer["lacks"]) == {"nosuch", "nosuch.part"}
    told = {"executable": "/bin/py", "lacks": {"numpy": "No module named 'numpy'", "pandas": "no"}, "fairlead": None}
    for choice in (workers.OWN, workers.THEIRS, workers.SERVERS):
        with pytest.raises(UnsupportedError, match=r"U109 the workers' Python, /bin/py, cannot import numpy, pandas") as caught:
            workers._require(told, choice)
        assert "/bin/py -m pip install 'fairlead[spark]==" in str(caught.value.fix)
        assert choice in str(caught.value.fix)


class Remote(SimpleNamespace):
    """As much of a session of Spark Connect as is looked at."""


Remote.__module__ = "pyspark.sql.connect.session"


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        (session("local[2]"), workers.OWN),
        (session("spark://host:7077"), workers.THEIRS),
        (session("yarn"), workers.THEIRS),
        (Remote(session_id="1"), workers.SERVERS),
    ],
)
def test_what_workers_lack_is_mended_where_their_interpreter_is_chosen(
    given: Any, choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"executable": "/bin/py", "lacks": {"numpy": "No module named 'numpy'"}, "fairlead": None}
    monkeypatch.setattr(workers, "_asked", lambda spark: [told])
    with pytest.raises(UnsupportedError, match="U109") as caught:
        workers.require_workers(given)
    assert choice in str(caught.value.fix)
    assert "PYSPARK_PYTHON" in choice
