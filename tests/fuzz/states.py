"""Dumped states that were damaged: loading gives an engine that works, or a StateError.

By accident (bytes changed, cut off, put together), and by intent: the digest is made anew, so that what is inside counts.
Numbers out of range, queues out of order, events that are missing or of another type, keys of other kinds, NULLs,
columns that are missing, doubled or of another type; parts of subscriptions and units exchanged. In both matchers, which agree
about what loads: it is fed, dumped and loaded once more.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from fairlead.engine import Engine
from fairlead.errors import LanguageError, StateError, UnsupportedError
from fairlead.language import compile_text
from fairlead.matching.compiled.planning.eligibility import expenses
from fairlead.matching.state import packed_columns
from fairlead.matching.state.encoding import MAGIC, VERSION
from fairlead.matching.state.packed_columns import KINDS
from fairlead.model.events.columns import Columns
from fairlead.model.plans.plan import Plan
from fairlead.transport.admission.records import read_records
from tests.fuzz.plans import _loaded
from tests.fuzz.rules import rules
from tests.fuzz.streams import events

DAMAGES = 12
"""States made of one dump."""
COSTLY_MAX = 15
"""Events of a plan that `lint` calls costly (W014): kernels as Python take minutes for twice as many."""
NUMBERS = (0, 1, -1, 2, 3, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63), 2_097_152, 1_000_000, 10**15)

seen: Counter[str] = Counter()


def case(seed: int) -> None:
    with patch.object(packed_columns, "WORTH", packed_columns.WORTH if seed % 2 else 1):  # small states are packed as well
        _case(seed)


def _case(seed: int) -> None:
    rng = Random(seed)
    os.environ["FAIRLEAD_JIT"] = "0"
    made = rules(rng)
    try:
        plan = compile_text(str(made))
        stream = events(rng, made.attributes, rng.choice((6, 15, 30)))
        if any(expenses(plan)):
            stream = stream[:COSTLY_MAX]
        cut = rng.randrange(len(stream) + 1)
        batches = list(read_records(stream[:cut], plan.catalogue, batch_rows=rng.choice((1, 4, 100))))
        rest = list(read_records(stream[cut:], plan.catalogue, start=2**40, batch_rows=3))
        engine = Engine(plan, kernels_from=rng.choice((None, 0)))
    except (LanguageError, UnsupportedError):
        seen["refused"] += 1
        return
    for columns in batches:
        engine.feed(columns)
    dumped = engine.dump()
    works(plan, dumped, rest)  # as it is
    for _ in range(DAMAGES):
        try:
            damaged = rng.choice(DAMAGE)(rng, dumped)
        except (pa.ArrowException, ValueError, OverflowError, TypeError):  # no such Arrow data can be made
            continue
        seen["states"] += 1
        try:
            works(plan, damaged, rest)
            seen["loaded"] += 1
        except StateError as error:
            seen[error.code] += 1


def works(plan: Plan, dumped: bytes, rest: list[Columns]) -> None:
    """Raises StateError where the state is refused; by both matchers, then."""
    refused: StateError | None = None
    said: list[tuple[list[list[str]], bytes]] = []
    for load in (lambda: Engine.load(plan, dumped, kernels_from=None), lambda: _loaded(plan, dumped)):
        try:
            engine = load()
        except StateError as error:
            refused = error
            continue
        except UnsupportedError:
            continue
        assert refused is None, f"one matcher refuses ({refused}), the other does not"
        after = [each for each in rest if each.follow(engine.last.major)]
        found = [list(map(str, engine.feed(columns))) for columns in after]
        again = engine.dump()
        Engine.load(plan, again, kernels_from=None)
        said.append((found, again))
    assert len({str(each) for each in said}) < 2, "the two matchers go on differently"
    if refused is not None:
        raise refused


# --- by accident


def _bytes_changed(rng: Random, dumped: bytes) -> bytes:
    made = bytearray(dumped)
    for _ in range(rng.choice((1, 1, 3))):
        made[rng.randrange(len(made))] = rng.randrange(256)
    return bytes(made)


def _cut_off(rng: Random, dumped: bytes) -> bytes:
    return dumped[: rng.randrange(len(dumped))]


def _put_together(rng: Random, dumped: bytes) -> bytes:
    low, high = sorted(rng.randrange(len(dumped)) for _ in range(2))
    return dumped[:high] + dumped[low:]


def _signed(body: bytes) -> bytes:
    return b"%s %d %s\n%s" % (MAGIC, VERSION, hashlib.sha256(body).hexdigest().encode(), body)


def _signed_again(of: Callable[[Random, bytes], bytes]) -> Callable[[Random, bytes], bytes]:
    def made(rng: Random, dumped: bytes) -> bytes:
        return _signed(of(rng, dumped.partition(b"\n")[2]))

    return made


# --- by intent


def _structure(rng: Random, dumped: bytes) -> bytes:
    """One to three columns changed, or the way in which they are written."""
    batch = pa.ipc.open_stream(dumped.partition(b"\n")[2]).read_next_batch()
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(list(columns))
        if rng.random() < 0.06:
            del columns[name]
        elif rng.random() < 0.06:
            columns[f"{name.split()[0]} {rng.randrange(4)}"] = columns[name]
        else:
            columns[name] = _column(rng, columns[name])
    return _signed(_written(rng, columns))


def _exchanged(rng: Random, dumped: bytes) -> bytes:
    """Parts of one subscription or unit in the place of another's: whole units, one of their tables, or rows about them."""
    batch = pa.ipc.open_stream(dumped.partition(b"\n")[2]).read_next_batch()
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice((_units, _units, _tables, _tables, _about))(rng, columns)
    return _signed(_written(rng, columns))


def _units(rng: Random, columns: dict[str, pa.Array]) -> None:
    """All tables of two units, with or without what instances refer to."""
    units = sorted({name.split()[1] for name in columns if " " in name})
    if len(units) < 2:
        return
    one, other = rng.sample(units, 2)
    kinds = rng.choice(
        (
            ("instances", "queued", "waiting", "idle"),
            ("idle",),
            ("events", "types", "rows"),
            ("events",),
            ("types",),
            ("rows",),
            None,
        )
    )
    moved = {
        each
        for each in columns
        if " " in each and each.split()[1] in (one, other) and (kinds is None or each.split()[0] in kinds)
    }
    parts = {each: columns.pop(each) for each in moved}
    for name, column in parts.items():
        kind, unit, *rest = name.split()
        columns[" ".join([kind, other if unit == one else one, *rest])] = column


def _tables(rng: Random, columns: dict[str, pa.Array]) -> None:
    """Two tables of one kind, or one column of each."""
    kind = rng.choice(("instances", "queued", "waiting", "idle", "events", "rows", "types"))
    named = [name for name in columns if name.startswith(f"{kind} ")]
    if len(named) < 2:
        return
    one, other = rng.sample(named, 2)
    left, right = columns[one].values, columns[other].values
    if kind in ("queued", "types") or rng.random() < 0.4:
        columns[one], columns[other] = columns[other], columns[one]
        return
    names = [{each.type.field(at).name: each.field(at) for at in range(each.type.num_fields)} for each in (left, right)]
    shared = [each for each in names[0] if each in names[1] and len(names[0][each]) == len(names[1][each])]
    if not shared:
        return
    field = rng.choice(shared)
    names[0][field], names[1][field] = names[1][field], names[0][field]
    for name, fields in zip((one, other), names, strict=True):
        columns[name] = _one_row(pa.StructArray.from_arrays(list(fields.values()), names=list(fields)))


def _about(rng: Random, columns: dict[str, pa.Array]) -> None:
    """Which subscription has which digest, unit, frame, beginning or time; or whose an instance is."""
    tables = ["subscriptions", *(name for name in columns if name.startswith("instances "))]
    name = rng.choice(tables)
    rows = columns[name].values
    fields = {rows.type.field(at).name: rows.field(at) for at in range(rows.type.num_fields)}
    chosen = "subscription" if name != "subscriptions" else rng.choice(("digest", "unit", "frame", "since", "seen", "silent"))
    if len(rows) > 1 and chosen in fields:
        order = list(range(len(rows)))
        rng.shuffle(order)
        fields[chosen] = fields[chosen].take(pa.array(order))
        columns[name] = _one_row(pa.StructArray.from_arrays(list(fields.values()), names=list(fields)))


def _one_row(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _written(rng: Random, columns: Mapping[str, pa.Array]) -> bytes:
    names, arrays = list(columns), list(columns.values())
    if rng.random() < 0.03:
        names, arrays = [*names, names[0]], [*arrays, arrays[0]]
    rows = min(map(len, arrays))
    batch = pa.RecordBatch.from_arrays([each.slice(0, rows) for each in arrays], names=names)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=rng.choice((None,) * 30 + ("zstd", "lz4")))
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        for _ in range(rng.choice((1,) * 30 + (0, 2))):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _column(rng: Random, column: pa.Array) -> pa.Array:
    if not pa.types.is_list(column.type):
        return _values(rng, column)
    values = column.values
    if rng.random() < 0.04:
        return pa.array([None], column.type)
    if pa.types.is_struct(values.type) and values.type.num_fields:
        fields = {values.type.field(at).name: values.field(at) for at in range(values.type.num_fields)}
        metadata = {each.name: each.metadata for each in values.type}
        chosen = rng.choice(list(fields))
        if rng.random() < 0.15:
            metadata[chosen] = _packing(rng, metadata[chosen])
        elif rng.random() < 0.08:
            fields.pop(chosen)
        elif rng.random() < 0.3:
            rows = _rows(rng, len(values))
            fields = {name: each.take(rows) for name, each in fields.items()}
        else:
            fields[chosen] = _values(rng, fields[chosen])
        size = min(map(len, fields.values()), default=0)
        mask = pa.array([at == 0 for at in range(size)]) if rng.random() < 0.03 else None
        typed = [pa.field(name, each.type, metadata=metadata[name]) for name, each in fields.items()]
        values = pa.StructArray.from_arrays([each.slice(0, size) for each in fields.values()], fields=typed, mask=mask)
    else:
        values = values.take(_rows(rng, len(values))) if rng.random() < 0.3 else _values(rng, values)
    ends = [0, len(values)] if rng.random() < 0.95 else [min(1, len(values)), len(values)]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


def _packing(rng: Random, given: dict[bytes, bytes] | None) -> dict[bytes, bytes] | None:
    """Another type, base or unit of a packed column (packed_columns.py), or none."""
    if rng.random() < 0.2:
        return None
    told = (given or {}).get(b"packed", b"int64 0 1").decode().rsplit(" ", 2)
    at = rng.randrange(3)
    edges = (0, 1, -1, 2, 1000, 2**31, 2**62, 2**63 - 1, -(2**63), 2**63, 10**40, "", "x")
    told[at] = rng.choice([*KINDS, "double"]) if at == 0 else str(rng.choice(edges))
    return {b"packed": " ".join(told).encode()}


def _rows(rng: Random, size: int) -> pa.Array:
    """All rows in another order, some twice, or some left out."""
    rows = list(range(size))
    if rng.random() < 0.3:
        rng.shuffle(rows)
    elif rows and rng.random() < 0.5:
        rows.insert(rng.randrange(size), rng.randrange(size))
    elif rows:
        rows.pop(rng.randrange(size))
    return pa.array(rows, pa.int64())


def _values(rng: Random, column: pa.Array) -> pa.Array:
    if not len(column):
        return pa.array([0], pa.int64()) if rng.random() < 0.3 else column
    if rng.random() < 0.08:
        kind = rng.choice(
            (pa.int64(), pa.int32(), pa.float64(), pa.string(), pa.bool_(), pa.null(), pa.large_string(), pa.int8())
        )
        return pa.nulls(len(column), kind) if rng.random() < 0.5 or kind == pa.null() else column.cast(kind)
    at = rng.randrange(len(column))
    if rng.random() < 0.15:
        return pa.concat_arrays([column.slice(0, at), pa.nulls(1, column.type), column.slice(at + 1)])
    return pa.concat_arrays([column.slice(0, at), _value(rng, column, at), column.slice(at + 1)])


def _value(rng: Random, column: pa.Array, at: int) -> pa.Array:
    kind = column.type
    if rng.random() < 0.25:
        return column.slice(rng.randrange(len(column)), 1)
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        number = column[at].value if not pa.types.is_integer(kind) else column[at].as_py()
        near = [] if number is None else [number + 1, number - 1, number * 2, number + 2**21]
        low, high = (-(2**31), 2**31 - 1) if kind == pa.int32() else (-(2**63), 2**63 - 1)
        made = rng.choice([each for each in (*near, *NUMBERS) if low <= each <= high])
        return pa.array([made], pa.int32() if kind == pa.int32() else pa.int64()).view(kind)
    if pa.types.is_floating(kind):
        return pa.array([rng.choice((float("nan"), -0.0, float("inf"), 1.5))])
    if pa.types.is_boolean(kind):
        return pa.array([not column[at].as_py()])
    if pa.types.is_string(kind):
        return pa.array([rng.choice(("", "A", "B", "Heartbeat", "nothing", "a" * 500))])
    if pa.types.is_decimal(kind):
        raw = np.array([rng.choice((0, 2**63 - 1, -1)), rng.choice((0, 2**62, -1))], dtype=np.int64)
        return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(raw)]) if kind.bit_width == 128 else column.slice(at, 1)
    return pa.array([rng.choice((b"", b"\xff"))], kind)


DAMAGE: tuple[Callable[[Random, bytes], Any], ...] = (
    _bytes_changed, _cut_off, _put_together, _signed_again(_bytes_changed), _signed_again(_bytes_changed),
    _signed_again(_cut_off), _signed_again(_put_together), *[_structure] * 12, *[_exchanged] * 8,
)  # fmt: skip
