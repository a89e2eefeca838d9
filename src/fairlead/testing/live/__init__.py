"""Failures with real servers: a cluster whose servers, links, readers and writers fail by a schedule, and what must hold after.

asking.py      a question to a server, without a client
ports.py, links.py, cluster.py   servers that can be killed and paused, links that can be cut
publisher.py, subscriber.py      the processes that work meanwhile; each writes a record (records.py)
faults.py, schedule.py           what fails, and when, by a seed
copying.py, tracing.py           the log as it is afterwards, and with the records a trace (testing/trace.py)
checks.py      nothing lost, nothing doubled, nobody disagrees, every property kept
campaign.py    all of it: python -m fairlead.testing.live --seconds 600 --seed 7
"""
