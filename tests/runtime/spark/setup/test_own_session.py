"""`match` on a session that its user made himself, by an interpreter that is not on the PATH; and on Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

import fairlead

PYTHONS = (
    "PYSPARK_PYTHON",
    "PYSPARK_DRIVER_PYTHON",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "SPARK_HOME",
    "SPARK_REMOTE",
    "SPARK_SUBMIT_OPTS",
)
OWN = 'import os, sys; os.environ["PYSPARK_PYTHON"] = sys.executable  # before the session is made'
ANOTHER_VERSION = """import sys
class Version(tuple):
    major, minor, micro, releaselevel, serial = 3, 99, 0, "final", 0
sys.version_info = Version((3, 99, 0, "final", 0))
"""


def interpreter(folder: Path, *, packages: bool = False, **files: str) -> str:
    """An environment of its own, with the packages of this one or without, but never with this fairlead."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    there = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    if packages:
        (there / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for name, content in files.items():
        (there / f"{name}.py").write_text(content)
    return str(folder / "bin" / "python3")


def run(scenario: str, folder: Path, **environment: str) -> dict[str, Any]:
    mine = {name: value for name, value in os.environ.items() if name not in PYTHONS} | environment
    script = Path(__file__).with_name("own_session.py")
    done = subprocess.run(
        [sys.executable, str(script), scenario, str(folder)], env=mine, capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert "raised" not in found, found["raised"]
    return found


@pytest.mark.skipif(os.name != "posix", reason="environments have a folder bin")
def test_a_session_of_ones_own_runs_or_says_what_it_lacks(tmp_path: Path) -> None:
    bare = interpreter(tmp_path / "bare")
    chosen = {
        "bare": bare,
        "nowhere": "/nowhere/python3",
        "another version": interpreter(tmp_path / "another", packages=True, sitecustomize=ANOTHER_VERSION),
        "without fairlead": interpreter(tmp_path / "without", packages=True),
        "other fairlead": interpreter(tmp_path / "other", packages=True, fairlead="__version__ = '0.0.1'"),
    }
    path = f"{Path(bare).parent}{os.pathsep}{os.environ['PATH']}"
    found = run("unaware", tmp_path, PATH=path, INTERPRETERS=json.dumps(chosen), SPARK_LOCAL_IP="127.0.0.1")
    assert found["told"] == found["still told"] == "python3"
    assert found["batch"], "the driver's interpreter runs the workers"
    assert found["stream"], "the state store is set where nobody chose one"
    assert found["own function"] == str(tmp_path / "bare"), "other functions run where they did"
    assert found["store"][0] == "U114"
    assert "HDFSBackedStateStoreProvider" in found["store"][1]
    assert found["store"][2].startswith('spark.conf.set("spark.sql.streaming.stateStore.providerClass", "org.apache.spark')
    assert found["stopped"][0] == "A403"
    assert all(found[name][1][0] == "A403" for name in chosen), "a frame of a session before"

    assert found["bare"][0][0] == "U109"
    assert f"{bare}, cannot import fairlead, llvmlite, numpy" in found["bare"][0][1]
    assert found["bare"][0][2].startswith(OWN)
    assert found["nowhere"][0] == ["U108", "Spark cannot start the workers' Python, /nowhere/python3", OWN]
    assert found["another version"][0][0] == "U108"
    assert f"another version than the driver's {sys.version_info[0]}.{sys.version_info[1]}" in found["another version"][0][1]
    assert found["without fairlead"][0][:1] == ["U109"]
    assert "cannot import fairlead: No module named 'fairlead'" in found["without fairlead"][0][1]
    assert f"has fairlead 0.0.1, and the driver has {fairlead.__version__}" in found["other fairlead"][0][1]
    for name in ("without fairlead", "other fairlead"):
        assert found[name][0][2].startswith("fl.ship(spark)")
        assert found[name][2], "as the fix says"


def test_spark_connect_gives_the_same_ids(tmp_path: Path) -> None:
    """All that a remote session has: no JVM in reach, and the server chooses the interpreter."""
    pytest.importorskip("grpc")
    pytest.importorskip("grpc_status")
    pytest.importorskip("zstandard")
    found = run("remote", tmp_path, PYSPARK_PYTHON=sys.executable, SPARK_TESTING="1", SPARK_LOCAL_IP="127.0.0.1")
    assert found["module"].startswith("pyspark.sql.connect.")
    assert found["batch"]
    assert found["stream"]
    assert found["watermark"]
    code, problem, fix = found["bad row"]
    assert code == "D004"
    assert "got str 'yesterday'" in problem
    assert fix.startswith("use ISO 8601 text")
