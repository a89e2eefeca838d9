"""The package for executors that do not have it installed.

Executors on this machine (`local[…]`, `local-cluster[…]`) run the same Python with the same Fairlead. Executors of a cluster
get it as a zip; its dependencies must be installed there: ``pip install`` them, or use Spark's archives of environments. A zip
is enough: all data of the package is read through `importlib.resources`, and compiled kernels are named by their source, never
by a path.

Takes: a session. Gives: the zip from which its executors import. Never: writes beside the package.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import marshal
import shutil
import tempfile
import zipfile
from functools import lru_cache
from importlib import resources
from importlib.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all files, so that equal packages are equal zips."""
ENDINGS = (".py", ".json", ".lark", ".typed")


def ship(spark: SparkSession) -> Path:
    """Make this Fairlead importable on every executor of the session; a second call changes nothing."""
    archive = package()
    spark.addArtifacts(str(archive), pyfile=True)
    return archive


@lru_cache(maxsize=1)
def package() -> Path:
    """A zip of the package as it is loaded here, in a folder that is removed with this process."""
    folder = tempfile.mkdtemp(prefix="fairlead-ship-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = Path(folder) / "made.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, resources.files("fairlead"), "fairlead")
    digest = hashlib.sha256(made.read_bytes()).hexdigest()[:12]
    return made.rename(made.with_name(f"fairlead-{digest}.zip"))  # two versions in one session are two files


def _add(archive: zipfile.ZipFile, source: Traversable, path: str) -> None:
    for each in sorted(source.iterdir(), key=lambda entry: entry.name):
        name = f"{path}/{each.name}"
        if each.is_dir():
            if each.name != "__pycache__":
                _add(archive, each, name)
        elif each.name.endswith(ENDINGS):
            content = each.read_bytes()
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
            if each.name.endswith(".py"):
                archive.writestr(zipfile.ZipInfo(f"{name}c", EPOCH), _compiled(content, name), zipfile.ZIP_DEFLATED)


def _compiled(content: bytes, name: str) -> bytes:
    """A .pyc that is used without a check of its source. Python caches none for a zip: each worker would compile everything
    again."""
    code = compile(content, name, "exec", dont_inherit=True)
    flags, digest = (0b01).to_bytes(4, "little"), importlib.util.source_hash(content)
    return importlib.util.MAGIC_NUMBER + flags + digest + marshal.dumps(code)
