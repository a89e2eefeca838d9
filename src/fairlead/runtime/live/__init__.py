"""The live runtime: publishing to a log, and subscribing to it.

client.py        what `fairlead.connect` gives
registry.py      the declared types, which all clients share
publishing.py    events to blocks, in order, each stored once
subscribing.py   a log to relations
"""
