"""What an order by value costs: CPU microseconds per event of each piece of ORDER BY … DELAY, in one process and thread.

    python -m benchmarks.event_time --events 1000000 --repeat 5

The events are those of A2 of the live benchmark, with a time: two types in turns of 4,096 from some publishers, one event per
microsecond, each of which arrives up to `--disorder` milliseconds after its time. The batches are those of a live subscriber.
The pieces run one after the other on each batch, so that a busy machine slows all of them:

    arrivals       a batch by type, with order columns, sources and sequences
    frontier       what is late
    order          the batch by itself in its total order
    identities     the batch by itself, type by type
    buffer         the whole step: arrivals, frontier, what is held and released, their order and identities
    engine         matching what was released, and the ids of the relations
    unordered      the same subscription and batch without ORDER BY: engine and ids

`buffer` and `engine` are what a subscriber pays; the pieces above are parts of `buffer`. The digest is over the released
positions, identities and relation ids: it is the same for every commit, batch size and machine.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from hashlib import blake2b
from time import process_time
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

import fairlead
from benchmarks.measure import load, machine
from fairlead.engine import Engine
from fairlead.matching.results.delivery_order import ids_of
from fairlead.model.events.columns import Columns, arrow_schema
from fairlead.order.event_identity import event_identities
from fairlead.order.frontier import NOWHERE, SequenceFrontier
from fairlead.order.total import in_order
from fairlead.runtime.event_time import EventTimeBuffer
from fairlead.runtime.sorting import arrivals_of

Result = TypeVar("Result")
TYPES = "TYPE A (x INT, y INT, z INT, at TIMESTAMP) TIME at TYPE B (x INT, y INT, z INT, at TIMESTAMP) TIME at"
RULE = "SUBSCRIPTION S MATCH A a AND B b WHERE a.x = b.x AND a.y < b.y"
TURN, TOGETHER = 4_096, 16_384
"""Events of a type, then of the other; events of a batch."""
WARM, KERNELS_FROM = 65_536, 1_000
"""Events that do not count, and those after which kernels take over."""
PIECES = ("arrivals", "frontier", "order", "identities", "buffer", "engine", "unordered")


class Clock:
    """CPU seconds by piece."""

    def __init__(self, warm: bool = True) -> None:
        self.spent, self.warm = dict.fromkeys(PIECES, 0.0), warm

    def time(self, piece: str, action: Callable[..., Result], *arguments: object) -> Result:
        began = process_time()
        made = action(*arguments)
        self.spent[piece] += process_time() - began
        return made


class Seen:
    """A digest of the released events and of the relations, however they were cut into batches."""

    def __init__(self) -> None:
        self.parts = [blake2b(digest_size=8) for _ in range(3)]

    def note(self, columns: Columns, ids: Any) -> None:
        identities, events, relations = self.parts
        identities.update(columns.identities.tobytes() if columns.identities is not None else b"")
        relations.update(ids.tobytes())
        rows = np.zeros((len(columns), 4), dtype=np.int64)
        for name, table in columns.tables.items():
            rows[columns.places[name]] = np.stack([each.cast(pa.int64()).to_numpy() for each in table.columns], axis=1)
        events.update(np.column_stack([rows, columns.position_array]).tobytes())

    def digest(self) -> str:
        return blake2b(b"".join(each.digest() for each in self.parts), digest_size=8).hexdigest()


def batches(plan: Any, given: argparse.Namespace) -> Iterator[Columns]:
    random, events = np.random.default_rng(42), WARM + given.events
    place = np.arange(events)
    drawn = [random.integers(0, 1001, events, dtype=np.int32) for _ in "xyz"]
    times = (place - random.integers(0, 1_000 * given.disorder + 1, events)).view("datetime64[us]")
    turn = place // TURN
    codes, senders = turn % 2, turn % given.publishers
    sequences = turn // given.publishers * TURN + place % TURN
    names = [f"p{number}" for number in range(given.publishers)]
    for low in range(0, events, given.together):
        cut = slice(low, low + given.together)
        rows, present = {}, np.unique(codes[cut]).tolist()
        for code in present:
            at = low + np.flatnonzero(codes[cut] == code)
            arrays = [pa.array(each[at]) for each in (*drawn, times)]
            schema = arrow_schema(plan.catalogue["AB"[code]])
            rows["AB"[code]] = pa.RecordBatch.from_arrays([*arrays[:3], arrays[3].cast(schema.field(3).type)], schema=schema)
        mine = np.searchsorted(present, codes[cut]).astype(np.int8)
        sources = [names[sender] for sender in senders[cut].tolist()]
        yield Columns(tuple(rows), mine, place[cut], rows, sources, sequences[cut])  # type: ignore[arg-type]


def run(given: argparse.Namespace) -> tuple[dict[str, float], str]:
    delay = f"ORDER BY at DELAY {given.delay} MILLISECONDS"
    plan, plain = fairlead.compile(f"{TYPES} {delay} {RULE}"), fairlead.compile(f"{TYPES} {RULE}")
    order, catalogue = plan.order, plan.catalogue
    assert order is not None
    clock, seen = Clock(), Seen()
    buffer = EventTimeBuffer(order, catalogue)
    engine, unordered = (Engine(each, kernels_from=KERNELS_FROM) for each in (plan, plain))
    frontier = SequenceFrontier(order.delay_us or 0, order.idle_us, NOWHERE, {})
    for columns in batches(plan, given):
        if columns.positions[0] >= WARM and clock.warm:
            clock = Clock(warm=False)  # kernels are compiled
        arrivals = clock.time("arrivals", arrivals_of, columns, order, catalogue)
        values, none = np.zeros(len(columns), dtype=np.int64), np.zeros(len(columns), dtype=bool)
        for name, table in columns.tables.items():
            values[columns.places[name]] = table.column(3).view(pa.int64()).to_numpy()
        clock.time("frontier", frontier.follow, values, none, columns.sources)
        clock.time("order", in_order, arrivals, 1)
        for name, table in arrivals.items():
            clock.time("identities", event_identities, catalogue[name], table, order)
        released = clock.time("buffer", buffer.step, columns)
        ids = clock.time("engine", lambda events: ids_of(engine.feed(events)), released.columns)
        clock.time("unordered", lambda events: ids_of(unordered.feed(events)), columns)
        seen.note(released.columns, ids)
    return {piece: 1e6 * spent / given.events for piece, spent in clock.spent.items()}, seen.digest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--together", type=int, default=TOGETHER, help="events of a batch")
    parser.add_argument("--publishers", type=int, default=1)
    parser.add_argument("--delay", type=int, default=25, help="milliseconds")
    parser.add_argument("--disorder", type=int, default=20, help="milliseconds; 0: events arrive in their order")
    given = parser.parse_args()
    about = machine()
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(f"load average {load()}; {vars(given)}\n")
    runs = [run(given) for _ in range(given.repeat)]
    digests = {digest for _, digest in runs}
    print("| CPU us an event | best | median | most | of unordered, median |")
    print("|---|---|---|---|---|")
    for piece in (*PIECES, "buffer + engine"):
        values = [sum(found[each] for each in piece.split(" + ")) for found, _ in runs]
        ratios = [value / found["unordered"] for value, (found, _) in zip(values, runs, strict=True)]
        middle, ratio = statistics.median(values), statistics.median(ratios)
        print(f"| {piece} | {min(values):.3f} | {middle:.3f} | {max(values):.3f} | {ratio:.2f} |")
    print(f"\ndigest {', '.join(sorted(digests))}; load average {load()}")


if __name__ == "__main__":
    main()
