"""The arrays that a kernel works on, by the names that its functions have for them (pool.py makes them).

Queues are doubly linked lists of nodes (node_layout.py), one for each key and type, numbered key * queues + queue. QUEUES has
their first node, last node, length, the root of their ordered index and their row in ROWS. KEYS has the clock of each key,
its flags (bit 0: a relation without the newest event may be ready; bit 1: some queue is not in the order of time), what
waits, and a time before which nothing is queued. CHAINS has the ends of the chains of the hash index, numbered as queues are.
LEAST_KEYS has of each queue a number that no key of its ordered index is below.
"""

from __future__ import annotations

from fairlead.matching.compiled.representation.expressions import Array, named_constants

NODES, LINKS, TREES, CHAIN_LINKS = Array("nodes"), Array("links"), Array("trees"), Array("chain_links")
QUEUES, KEYS, CHAINS, LEAST_KEYS, ROWS = Array("queues"), Array("keys"), Array("chains"), Array("least_keys"), Array("rows")
COUNTERS = Array("counters")
"""What is counted from call to call (counters.py)."""
WAITING, HEAP = Array("waiting"), Array("heap")
"""Relations that wait for a deadline (absence.py)."""
MEMBERS, SCRATCH, PLANS, RANKS = Array("members"), Array("scratch"), Array("plans"), Array("ranks")
"""What a search found; room for a reduced search, and its plans (reduced_search.py); the ranks of texts (keys.py)."""
KEY_TABLE, KEY_VALUES = Array("key_table"), Array("key_values")
"""Numbers of keys that are whole numbers, and the other way round (keys.py)."""
OUT_AT, OUT_REF, OUT_KEY, OUT_DUE = Array("out_at"), Array("out_ref"), Array("out_key"), Array("out_due")
FIRED_AT, FIRED_REF, FIRED_DUE, FIRED_BORN = Array("fired_at"), Array("fired_ref"), Array("fired_due"), Array("fired_born")
TOLD = Array("told")

HEAD, TAIL, COUNT, ROOT, ROW_OF = named_constants("HEAD TAIL COUNT ROOT ROW")
"""Columns of QUEUES, the first two also of CHAINS."""
CLOCK, FLAGS, WAITS, OLDEST = named_constants("CLOCK FLAGS WAITS OLDEST")
"""Columns of KEYS."""
