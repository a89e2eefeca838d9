"""The schedule of faults and operations is a function of its seed, and has each of them before any comes again."""

from __future__ import annotations

from fairlead.testing.live.cluster.faults import FAULTS, OF_SERVERS
from fairlead.testing.live.cluster.operations import OPERATIONS
from fairlead.testing.live.cluster.schedule import schedule


def test_as_many_steps_as_there_are_faults_of_servers_have_every_fault_once() -> None:
    for seed in range(20):
        steps = list(schedule(seed, 2 * len(OF_SERVERS)))
        for part in (steps[: len(OF_SERVERS)], steps[len(OF_SERVERS) :]):
            assert sorted(name for each in part for name in each.faults) == sorted(FAULTS | OPERATIONS)


def test_a_seed_gives_the_same_steps_again_and_another_one_others() -> None:
    assert list(schedule(7, 30)) == list(schedule(7, 30))
    assert list(schedule(7, 30)) != list(schedule(8, 30))
