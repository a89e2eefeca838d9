"""Rejected events are skipped by every reader alike (mixed_block.py); here they are written to Python's log.

Takes: a stored block, and why events of it are rejected. Gives: a warning of the logger `fairlead`. Never: raises.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from fairlead.errors import DataError
from fairlead.transport.log.protocol import Stored

LOGGER = logging.getLogger("fairlead")


def report(stored: Stored, rejected: Iterable[DataError]) -> None:
    for each in rejected:
        LOGGER.warning("%s %s (sequence %d): skipped by every reader", each.code, each.problem, stored.sequence)
