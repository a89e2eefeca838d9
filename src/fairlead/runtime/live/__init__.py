"""The live runtime: publishing to a log, and subscribing to it.

client.py          the client that `fairlead.connect` returns; sync_client.py: the same without asyncio
registry.py        the declared types, which all clients share
core/              decisions, as pure functions of the log
publisher/         events to blocks, in order, each stored once
subscriber/        a log to relations
merged_streams.py  streams of several topics: which are in use, where they end, which publishers wait
route_table.py     the conditions by which publishers mark blocks
export.py          events of a log as a file
overview.py        what a log contains, for operators; rejections.py: which of its blocks are rejected
log_conversion.py  logs of the first edition
"""
