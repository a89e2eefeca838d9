"""What the live runtime decides: what to read, hold, release, match, number, store and acknowledge. No clock, no I/O.

stream_groups.py   which streams each subscription of a plan reads
stream_merge.py    several streams as one order; what is held, and who is waited for
block_columns.py   blocks as the columns of an engine
strand.py          one part of a group at work: a matcher, and its progress in its streams
early.py           deliveries before the delay of ORDER BY has passed
lineage.py         a group of subscriptions on its streams: numbered relations, derived blocks, state
derived_blocks.py  emitted events as blocks
follower.py        lineages that are followed together, each from its own place
deliveries.py      batches, their numbers, the one order of several groups, reports on events
ledger.py          acknowledgements and receipts of a group
routes.py          the conditions by which blocks are filtered
declarations.py    texts of types, and which changes of them are allowed
event_table.py     blocks as a table, for exports and Spark
"""
