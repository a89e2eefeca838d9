"""Profiles for generated cases; the Spark session of the tests.

`make test` draws the same cases every time, so what passed once passes again. `FAIRLEAD_CASES=20000` (see `make equal`) draws
so many, and others in every run, as does `FAIRLEAD_RANDOM=1` with the usual number; `make fuzz` looks further.
"""

import atexit
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

from tests.spark_session import active, pytest_collection_modifyitems, spark  # noqa: F401

if "FAIRLEAD_CACHE" not in os.environ:  # compiled kernels: a folder for this run, which its worker processes inherit
    os.environ["FAIRLEAD_CACHE"] = tempfile.mkdtemp(prefix="fairlead-tests-")
    atexit.register(shutil.rmtree, os.environ["FAIRLEAD_CACHE"], ignore_errors=True)

settings.register_profile(
    "fairlead",
    max_examples=int(os.environ.get("FAIRLEAD_CASES", "60")),
    derandomize=not {"FAIRLEAD_CASES", "FAIRLEAD_RANDOM"} & os.environ.keys(),
    deadline=None,  # the machine is shared: time is measured in benchmarks/, never here
    print_blob=True,  # a failure prints the line that reproduces it
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fairlead")
