"""Fault injection with real servers: a cluster whose servers, links, readers and writers fail by a schedule, and the checks
after it.

cluster/      servers that can be killed and paused, links that can be cut; what fails, and when, by a seed
actors/       the processes that publish and subscribe meanwhile; each writes a record of its actions
verdict/      the log afterwards; nothing lost, nothing duplicated, all subscribers agree, every property kept
campaign.py   all of it: python -m fairlead.testing.live --seconds 600 --seed 7
"""
