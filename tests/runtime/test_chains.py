"""Whoever joins what an absence derives reads all that tells the absence the time, in one order, on every runtime."""

from __future__ import annotations

from fairlead.language import compile_text
from fairlead.runtime.live.core.routes import routes_of
from fairlead.runtime.live.core.stream_groups import groups_of as live_groups
from fairlead.runtime.spread.targets import groups_of as spark_groups

PLAN = compile_text(
    """
    TYPE A (x INT, at TIMESTAMP) TIME at
    TYPE B (x INT, at TIMESTAMP) TIME at
    TYPE C (x INT, at TIMESTAMP) TIME at
    SUBSCRIPTION Missing MATCH A a WITHOUT B b WITHIN 1 SECOND OF a EMIT M(x = a.x)
    SUBSCRIPTION Chain MATCH M m THEN C c WHERE c.x > 5
    """
)
"""C is read by Chain alone and under a condition; all of it decides the absence upstream."""


def test_a_live_subscriber_reads_them_in_one_stream_and_unfiltered() -> None:
    group = next(each for each in live_groups(PLAN) if "Chain" in each.names)
    (part,) = group.parts
    assert set(part.types) == {"A", "B", "C"}
    assert group.timed
    assert routes_of(part.plan, part.types) == {}


def test_a_spark_task_is_sent_all_of_them() -> None:
    group = next(each for each in spark_groups(PLAN) if "Chain" in each.names)
    assert group.reads == {"A", "B", "C", "Heartbeat"}
    assert not group.is_keyed
