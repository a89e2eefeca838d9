"""Whether Spark's requirements in Python are installed: pyspark 4.1 or a later 4, and pandas 2.

Takes: nothing. Gives: the package, or one sentence with the command that fixes it. Never: imports pandas, which takes long.
"""

from __future__ import annotations

import re
from importlib import import_module, metadata
from types import ModuleType

from fairlead.errors import UnsupportedError

INSTALL = "pip install 'fairlead[spark,java]'"
OLDEST = (4, 1)
"""transformWithState with rows, and Arrow batches out of a data source."""
TOO_NEW = (5, 0)
PANDAS_TOO_NEW = (3, 0)
"""Spark 4 does not support it, and warns at every call."""


def require_spark() -> ModuleType:
    """The package pyspark, of a supported version, with a compatible pandas."""
    try:
        pyspark = import_module("pyspark")
    except ModuleNotFoundError as error:
        raise UnsupportedError("U101", f"Spark is not installed: there is no package {error.name!r}", fix=INSTALL) from None
    found = str(pyspark.__version__)  # not its metadata: a Spark that was unpacked beside Python has none
    require_version(found, f"pyspark {found} is installed", INSTALL)
    _require_pandas()
    return pyspark


def require_version(found: str, what: str, fix: str) -> None:
    """Checks the version of pyspark, or of the Spark that a session runs on, which may differ."""
    if not OLDEST <= _numbers(found) < TOO_NEW:
        wanted = f"{OLDEST[0]}.{OLDEST[1]} or a later {OLDEST[0]}"
        raise UnsupportedError("U102", f"{what}, and Fairlead needs {wanted}", fix)


def _require_pandas() -> None:
    try:
        found = metadata.version("pandas")
    except metadata.PackageNotFoundError:
        raise UnsupportedError("U103", "pandas is not installed, and Spark needs it", fix=INSTALL) from None
    if _numbers(found) >= PANDAS_TOO_NEW:
        raise UnsupportedError("U103", f"pandas {found} is installed, and Spark 4 needs pandas 2", fix="pip install 'pandas<3'")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
