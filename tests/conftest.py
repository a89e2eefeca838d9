"""Profiles for generated cases: `FAIRLEAD_CASES=20000` asks for more of them (see `make equal`)."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fairlead",
    max_examples=int(os.environ.get("FAIRLEAD_CASES", "100")),
    deadline=None,  # the machine is shared: time is measured in benchmarks/, never here
    print_blob=True,  # a failure prints the line that reproduces it
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fairlead")
