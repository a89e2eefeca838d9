"""The log: blocks of events in one agreed order, and small tables beside them.

block.py      events of one type and source as bytes
protocol.py   the interface that every log implements
memory_log.py, file_log.py, log.py   a process, a folder, a NATS server or cluster
server.py     a local NATS server
"""
