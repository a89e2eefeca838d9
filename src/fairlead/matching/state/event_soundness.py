"""Whether the events of a state can be those of a matcher: in order, of types that can be queued, with the times that these
require; and whether units that keep one event of the log keep the same one.

Takes: events of a state. Raises: StateError (S005) with the first contradiction. Never: looks at what refers to the events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.matching.results.chunk import Numbers
from fairlead.matching.state.body import unsound
from fairlead.matching.state.content import Events
from fairlead.model.events.columns import arrow_schema, bits_of, columns_inside
from fairlead.model.events.position import Position
from fairlead.model.events.types import Catalogue
from fairlead.model.events.values import DATE_RANGE, TIMESTAMP_RANGE
from fairlead.model.limits import LIMITS
from fairlead.model.relations.identity import MINOR_BITS, MINOR_MASK


def require_agreement(units: Sequence[Events]) -> None:
    """If units have an event of the log at one place, it is the same event. (Derived ones have their own places.)"""
    some = [each for each in units if len(each)]
    if len(some) < 2:
        return
    names = sorted({name for each in some for name in each.types})
    words = np.concatenate([each.words for each in some])
    codes = np.concatenate([np.array([names.index(name) for name in each.types], dtype=np.int64)[each.codes] for each in some])
    order = np.argsort(words, kind="stable")
    again = np.flatnonzero(words[order][1:] == words[order][:-1])
    again = again[(words[order][again] & MINOR_MASK) == LIMITS.derived_per_event_max]
    one, other = order[again], order[again + 1]
    say((codes[one] == codes[other]).all(), "two subscriptions have different events at one place")
    for column in _origins(some):
        say(column.take(pa.array(one)).equals(column.take(pa.array(other))), "two subscriptions have one event of two sources")
    if all(each.identities is not None for each in some):
        identities = np.concatenate([each.identities for each in some])
        say((identities[one] == identities[other]).all(), "two subscriptions have one event with different identities")
    for code, name in enumerate(names):
        rows = np.cumsum(codes == code) - 1  # tables are in the order of their events
        mine = codes[one] == code
        tables = [each.tables[name] for each in some if name in each.tables]
        for number in range(tables[0].num_columns):
            column = pa.concat_arrays([table.column(number) for table in tables])
            left, right = (column.take(pa.array(rows[each[mine]])) for each in (one, other))
            say(_same(left, right), "two subscriptions have one event with different values")


def _origins(units: Sequence[Events]) -> Iterator[pa.Array]:
    for kind, given in ((pa.string(), [each.sources for each in units]), (pa.int64(), [each.sequences for each in units])):
        yield pa.concat_arrays(
            [pa.nulls(len(each), kind) if one is None else pa.array(one, kind) for each, one in zip(units, given, strict=True)]
        )


def _same(left: pa.Array, right: pa.Array) -> bool:
    """Compares by bits: a NaN equals itself. Nested columns are compared level by level."""
    for one, other in zip(columns_inside(left), columns_inside(right), strict=True):
        if not one.is_valid().equals(other.is_valid()):
            return False
        if pa.types.is_list(one.type):
            if not one.value_lengths().equals(other.value_lengths()):
                return False
        elif pa.types.is_floating(one.type):
            if not one.view(pa.int64()).equals(other.view(pa.int64())):
                return False
        elif not pa.types.is_struct(one.type) and not one.equals(other):
            return False
    return True


def say(holds: bool | np.bool_, problem: str) -> None:
    """Unless it holds."""
    if not holds:
        raise unsound(problem)


def are_times(values: npt.NDArray[np.int64]) -> bool:
    return not len(values) or (TIMESTAMP_RANGE[0] <= int(values.min()) and int(values.max()) <= TIMESTAMP_RANGE[1])


def are_dates(column: pa.Array) -> bool:
    """Whether a user can be shown all of them."""
    known = bits_of(column.drop_null())
    return not len(known) or (DATE_RANGE[0] <= int(known.min()) and int(known.max()) <= DATE_RANGE[1])


def require_events(events: Events, last: Position, catalogue: Catalogue) -> None:
    words, codes = events.words, events.codes
    for column in (words, codes, events.times):
        say(column.dtype == np.int64 and column.ndim == 1 and len(column) == len(events), "its columns of events are unlike")
    say(events.timed.dtype == np.bool_ and len(events.timed) == len(events), "its columns of events are unlike")
    for given in (events.sources, events.sequences):
        say(given is None or len(given) == len(events), "its columns of events are unlike")
    say(events.identities is None or events.identities.shape == (len(events), 2), "its columns of events are unlike")
    if not len(events):
        return
    say((words[1:] > words[:-1]).all() and words[0] >= 0, "its events are not in order")
    beyond = ((last.major + 1) << MINOR_BITS) + LIMITS.derived_per_event_max
    say(int(words[-1]) < beyond, "an event stands after the last position")
    say(sorted(set(events.types)) == list(events.types), "its types are not in order")
    say(int(codes.min()) >= 0 and int(codes.max()) < len(events.types), "an event has no type")
    for code, name in enumerate(events.types):
        _require_type(events, code, name, catalogue)


def _require_type(events: Events, code: int, name: str, catalogue: Catalogue) -> None:
    say(name in catalogue and not catalogue[name].is_union, "an event has no type")
    schema, table = catalogue[name], events.tables[name]
    mine = np.flatnonzero(events.codes == code)
    say(table.num_rows == len(mine) > 0, f"there are not as many '{name[:40]}' as events")
    if len(schema.attributes):  # a table without columns has no schema of its own
        say(table.schema.equals(arrow_schema(schema)), f"'{name[:40]}' has other attributes")
    at_its_own_place = (events.words[mine] & MINOR_MASK) == LIMITS.derived_per_event_max
    say((at_its_own_place != schema.derived).all(), f"'{name[:40]}' stands where it cannot")
    for column in (inside for each in table.columns for inside in columns_inside(each)):
        if pa.types.is_timestamp(column.type):
            say(are_times(filled(column)), f"'{name[:40]}' has a time that is none")
        if pa.types.is_date32(column.type):
            say(are_dates(column), f"'{name[:40]}' has a date that is none")
    say((events.timed[mine] == (schema.derived and schema.timed)).all(), f"'{name[:40]}' has no time, or one too many")
    say(are_times(events.times[mine][events.timed[mine]]), f"'{name[:40]}' has a time that is none")
    if schema.time_index is not None:
        own = table.column(schema.time_index)
        if not schema.derived:
            say(own.null_count == 0, f"'{name[:40]}' has no time")
        else:
            valid = own.is_valid().to_numpy(zero_copy_only=False)
            say((filled(own) == events.times[mine])[valid].all(), f"'{name[:40]}' has two times")


def filled(column: pa.Array) -> Numbers:
    made: Numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
    return made
