"""The variables that the loop and its searches share, by the names that they have in a kernel."""

from __future__ import annotations

from fairlead.matching.compiled.representation.expressions import TRUTH, WHOLE, Variable, variables

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
rising, late, new, entered, more = variables("rising late new entered more", TRUTH)
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
