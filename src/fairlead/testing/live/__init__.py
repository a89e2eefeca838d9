"""Failures with real servers: a cluster whose servers, links, readers and writers fail by a schedule, and what must hold after.

cluster/      servers that can be killed and paused, links that can be cut; what fails, and when, by a seed
actors/       the processes that publish and subscribe meanwhile; each writes a record of what it did
verdict/      the log as it is afterwards; nothing lost, nothing doubled, nobody disagrees, every property kept
campaign.py   all of it: python -m fairlead.testing.live --seconds 600 --seed 7
"""
