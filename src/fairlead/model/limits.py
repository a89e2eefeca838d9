"""All bounds in one frozen value, each with the arithmetic for its number."""

from __future__ import annotations

from fairlead.dataclass import dataclass


@dataclass(frozen=True)
class Limits:
    text_bytes_max: int = 16_000_000
    """A rule text. The longest hand-written rule sets we know of are 10,000 lines of 60 characters, 600 kB; generated ones are
    100,000 subscriptions of 150 characters, 15 MB, which take about a minute and 1.5 GB to compile. A longer file is probably
    data, passed by mistake."""

    event_bytes_max: int = 1_000_000
    """One event's text or values, the default maximum message of a NATS server (1 MiB), so a file never
    holds an event that could not be published."""

    dnf_terms_max: int = 256
    """Terms of a condition in disjunctive form. Eight ORs of two joined by AND are 2**8; beyond that the condition is a lookup
    table and belongs in IN."""

    instances_max: int = 64
    """Slots of one conjunction. A signature this long already needs 64 queued events per relation."""

    nesting_max: int = 64
    """Depth of an expression: keeps the recursive walks far below Python's stack of 1,000 frames."""

    data_type_depth_max: int = 8
    """Types within one another: `ARRAY<STRUCT<a: INT>>` has three. A relation's table adds three levels of its own (members, a
    member, its attribute), and Arrow's messages have at most 64, so 8 + 3 leaves room for users' own wrappers. Walks over a
    type and its values take four of Python's 1,000 frames a level."""

    fields_max: int = 1_000
    """Values that are not nested in one data type, counted over all its levels. Each is a column of a Parquet file, where the
    metadata of a column takes some 500 bytes for each row group: half a megabyte."""

    derived_per_event_max: int = 1_000_000
    """Derived events beside one event in the order; also the offset of the numbers of those that an absence fires *before* an
    event (see Position)."""

    relations_per_event_max: int = 100_000
    """Relations of MATCHING ALL that one event completes in one branch and key: as many as a join of two queues of 100,000 has
    for an event, and what a kernel has room for without growing while it runs."""

    copies_max: int = 100_000
    """Copies of upstream subscriptions, over all of a plan (model/plans/partition.py): a chain of 400 in which events derive
    several others has 80,000, and each costs about what a subscription costs."""

    segment_events_min: int = 16_384
    """Events between two states that LATE REVISE keeps: on kernels, feeding them again takes some ten milliseconds, about as
    long as loading the state before them."""

    segments_max: int = 16
    """States that LATE REVISE keeps; each may be as large as the engine's. Beyond that, every second one is dropped."""


LIMITS = Limits()
