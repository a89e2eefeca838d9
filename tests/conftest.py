"""Profiles for generated cases; the Spark session of the tests; their marks.

`make test` draws the same cases every time, so what passed once passes again. `FAIRLEAD_CASES=20000` (see `make equal`) draws
so many, and others in every run, as does `FAIRLEAD_RANDOM=1` with the usual number; `make fuzz` looks further.
`FAIRLEAD_QUICK=1` (see `make quick`) draws a sixth, the same every time, and leaves out what `tests/marks.py` says.

`FAIRLEAD_KEPT_KERNELS=1` (see `make quick`) keeps compiled kernels for the next run, as long as the compiler is the same.
"""

import atexit
import gc
import hashlib
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

from tests.marks import FOLDERS, QUICK, pytest_collection_modifyitems, pytest_runtest_call, pytest_runtest_teardown  # noqa: F401
from tests.root import ROOT
from tests.spark_session import active, spark  # noqa: F401


def compilers_digest() -> str:
    """Of the code that makes machine code of a kernel's source: the cache itself goes by the source and a version."""
    files = sorted((ROOT / "src/fairlead/matching/compiled/machine_code").glob("*.py"))
    return hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:16]


if "FAIRLEAD_CACHE" not in os.environ:  # compiled kernels: a folder for this run, which its worker processes inherit
    if "FAIRLEAD_KEPT_KERNELS" in os.environ:
        os.environ["FAIRLEAD_CACHE"] = str(ROOT / ".pytest_cache" / f"kernels-{compilers_digest()}")
    else:
        os.environ["FAIRLEAD_CACHE"] = tempfile.mkdtemp(prefix="fairlead-tests-")
        atexit.register(shutil.rmtree, os.environ["FAIRLEAD_CACHE"], ignore_errors=True)

if QUICK:
    collect_ignore = [folder for folders in FOLDERS.values() for folder in folders]


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: a third of a million objects, which no full collection need visit."""
    gc.collect()
    gc.freeze()


settings.register_profile(
    "fairlead",
    max_examples=int(os.environ.get("FAIRLEAD_CASES", "10" if QUICK else "60")),
    derandomize=not {"FAIRLEAD_CASES", "FAIRLEAD_RANDOM"} & os.environ.keys(),
    deadline=None,  # the machine is shared: time is measured in benchmarks/, never here
    print_blob=True,  # a failure prints the line that reproduces it
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fairlead")
