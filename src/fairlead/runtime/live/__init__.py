"""The live runtime: publishing to a log, and subscribing to it.

client.py        the client that `fairlead.connect` returns
registry.py      the declared types, which all clients share
publishing.py    events to blocks, in order, each stored once
subscribing.py   a log to relations
"""
