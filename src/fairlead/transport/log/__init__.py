"""The log: blocks of events in one agreed order, and the small tables that go with it.

block.py      events of one type and source as bytes
protocol.py   what a log is, whoever keeps it
memory_log.py, file_log.py, log.py   a process, a folder, a NATS server or cluster
server.py     a NATS server of one's own
"""
