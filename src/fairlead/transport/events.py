"""Events in any form that the Python API accepts, as Columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairlead.errors import UsageError
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import Catalogue
from fairlead.transport.admission.records import read_records
from fairlead.transport.tables.table_reader import is_table, read_table


def read_events(events: Any, catalogue: Catalogue, **options: Any) -> Iterator[Columns]:
    """An iterable of dicts, or a table of pyarrow, pandas or polars. The options are those of `read_records`."""
    if is_table(events):
        return read_table(events, catalogue, **options)
    if isinstance(events, (str, bytes, dict)) or not hasattr(events, "__iter__"):
        fix = "pass an iterable of dicts, or a table of pyarrow, pandas or polars; `fairlead run` reads files"
        if isinstance(events, dict) and events and all(map(is_table, events.values())):
            fix = "pass one table for all types: add a column `type` to each and concatenate them; `order_by` sorts the rows"
        raise UsageError("A102", f"expected events as dicts or a table, got {type(events).__name__}", fix)
    return read_records(events, catalogue, **options)
