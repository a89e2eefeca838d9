"""Deterministic simulation: many runs with random failures, each a function of its seed, and small examples of those that fail.

outcome.py     what a simulation is, and what a run of it gives
processes.py   processes of one's own: pure steps, with messages, alarms, requests and deliveries
links.py       what becomes of a message on its way
world.py       runs processes: links, crashes, pauses, partitions, clocks; drains at the end
protocol.py    a protocol of one's own as a simulation: its cases, and simpler ones
shrinking.py   from a case that fails to a small one
runs.py        many seeds, in several processes, with progress
live/          Fairlead's live part: the real client, on a simulated event loop, over a simulated log

python -m fairlead.testing.simulator live --runs 100000 --seed 1 --jobs 2
"""
