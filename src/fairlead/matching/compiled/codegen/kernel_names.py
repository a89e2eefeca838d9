"""The names of a kernel: the arrays that it works on (pool.py makes them), their columns, and the variables that the loop and
its searches share.

Queues are doubly linked lists of nodes (node_layout.py), one for each key and type, numbered key * queues + queue. QUEUES has
their first node, last node, length, the root of their ordered index and their row in ROWS. KEYS has the clock of each key,
its flags (bit 0: a relation without the newest event may be ready; bit 1: some queue is not in the order of time), what
waits, and a time before which nothing is queued. CHAINS has the ends of the chains of the hash index, numbered as queues are;
CHAIN_LEAST of each a number that no key of it is below, where a comparison asks for one (indexes/hash_index.py).
LEAST_KEYS has of each queue a number that no key of its ordered index is below.
"""

from __future__ import annotations

from fairlead.matching.compiled.representation.formulas import TRUTH, WHOLE, Array, Variable, named_constants, variables

NODES, LINKS, TREES, CHAIN_LINKS = Array("nodes"), Array("links"), Array("trees"), Array("chain_links")
QUEUES, KEYS, CHAINS, LEAST_KEYS, ROWS = Array("queues"), Array("keys"), Array("chains"), Array("least_keys"), Array("rows")
CHAIN_LEAST = Array("chain_least")
COUNTERS = Array("counters")
"""What is counted from call to call (counters.py)."""
WAITING, HEAP = Array("waiting"), Array("heap")
"""Relations that wait for a deadline (deadlines.py)."""
MEMBERS, SCRATCH, PLANS, RANKS = Array("members"), Array("scratch"), Array("plans"), Array("ranks")
"""What a search found; room for a reduced search, and its plans (reduced_search.py); the ranks of texts (keys.py)."""
KEY_TABLE, KEY_VALUES = Array("key_table"), Array("key_values")
"""Numbers of keys that are whole numbers, and the other way round (keys.py)."""
OUT_AT, OUT_REF, OUT_KEY, OUT_DUE = Array("out_at"), Array("out_ref"), Array("out_key"), Array("out_due")
FIRED_AT, FIRED_REF, FIRED_DUE, FIRED_BORN = Array("fired_at"), Array("fired_ref"), Array("fired_due"), Array("fired_born")
TOLD = Array("told")
CHOSEN = Array("chosen")
"""Of the newest event, the nodes of the members of each relation (union_disposal.py)."""

SEARCHES, FRAMES, LISTED, RING = Array("searches"), Array("frames"), Array("listed"), Array("ring")
"""Of a sequence: the search of each key, choice points (sequences/search_state.py), beside HEAP the deadlines in it, and the
keys whose deadlines come in order (sequences/sequence_deadlines.py)."""
OUT_LENGTH, OUT_START, OUT_BORN = Array("out_length"), Array("out_start"), Array("out_born")
"""Of relations of sequences: how many members each slot has; of what a deadline decided, the first and the last row of its
search."""

HEAD, TAIL, COUNT, ROOT, ROW_OF = named_constants("HEAD TAIL COUNT ROOT ROW")
"""Columns of QUEUES, the first two also of CHAINS."""
CLOCK, FLAGS, WAITS, OLDEST = named_constants("CLOCK FLAGS WAITS OLDEST")
"""Columns of KEYS."""

# Variables

k, w, tm, b, bk = variables("key word time bits bucket")
"""Of the newest event: the number of its key, its place in the order, its time, which bits hold (shape_builder.py), and its
number in the hash index."""
i, j, v, e, c = variables("row lane_row value entry node")
"""The row of the batch, that of the columns of its lane, a key before it is numbered, the newest event's node, and another."""
free, fresh, found = variables("free fresh found")
"""The first free node, the nodes that were ever in use, and the relations of this batch."""
key = Variable("sort_key", WHOLE)
"""In an ordered index."""
lane_of, oldest, anchor, walked, left = variables("lane oldest anchor walked left")
rising, late, new, entered, more, stays = variables("rising late new entered more stays", TRUTH)
count, relation, place, step, reached = variables("count relation place step reached")
"""The relations of the newest event, one of them, a place in the order, the next node, and the row at which a batch ended."""
base, kbase, within, until, last = variables("base key_base within until last")
"""Arguments: the place of the first row, the least key that is numbered, the window, and up to when nothing more comes, at
which place."""


def bound_to(slot: int) -> Variable:
    """The node at a slot."""
    return Variable(f"node{slot}", WHOLE)


def lowest_of(slot: int) -> Variable:
    """The first node that can stand at a slot."""
    return Variable(f"lowest{slot}", WHOLE)


def place_of(slot: int) -> Variable:
    """Where the member at a slot stands in the order."""
    return Variable(f"place{slot}", WHOLE)


def front_of(queue: int) -> Variable:
    """A node of a queue without which what stands before it is in no relation to come."""
    return Variable(f"front{queue}", WHOLE)


def chain_of(slot: int) -> Variable:
    """The chain of the hash index along which the slot is searched."""
    return Variable(f"chain{slot}", WHOLE)


def least_of(slot: int) -> Variable:
    """The least key of the chain so far."""
    return Variable(f"least{slot}", WHOLE)


def sought_at(slot: int) -> Variable:
    """What the ordered index is asked for."""
    return Variable(f"sought{slot}", WHOLE)


def value_of(column: int) -> Variable:
    """The newest event's value, a whole number or a float."""
    return Variable(f"value{column}")


def bucket_of(number: int) -> Variable:
    """The newest event's number by one of several values."""
    return Variable(f"bucket{number}", WHOLE) if number else bk


def count_of(lane: int) -> Variable:
    """Rows of a lane so far."""
    return Variable(f"lane_rows{lane}", WHOLE)
