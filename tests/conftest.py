"""Profiles for generated cases: `FAIRLEAD_CASES=20000` asks for more (see `make equal`); the Spark session of the tests."""

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
    max_examples=int(os.environ.get("FAIRLEAD_CASES", "100")),
    deadline=None,  # the machine is shared: time is measured in benchmarks/, never here
    print_blob=True,  # a failure prints the line that reproduces it
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fairlead")
