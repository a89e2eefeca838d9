"""Signals as a terminal sends them: started by `nohup`, a test run ignores SIGHUP, and so would the commands that it starts."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def heard_hangup() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    if before is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
