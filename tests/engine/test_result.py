"""The result of a match: the same whatever form the events come in, and columns when asked."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairlead
from fairlead.errors import DataError, UsageError
from fairlead.transport.events import read_events

RULES = """
TYPE EarningsReport (symbol STRING, at TIMESTAMP) TIME at
TYPE StockQuote (symbol STRING, value DOUBLE, at TIMESTAMP) TIME at
SUBSCRIPTION Rally
MATCH EarningsReport r AND StockQuote q[2] WHERE q[2].value > q[1].value PER symbol WITHIN 5 MINUTES
EMIT RallySeen(symbol = r.symbol, gain = q[2].value - q[1].value, since = r.at)
"""
EVENTS = [
    {"type": "StockQuote", "symbol": "IBM", "value": 1.0, "at": "2026-01-01T00:00:00Z"},
    {"type": "EarningsReport", "symbol": "IBM", "at": "2026-01-01T00:00:01Z"},
    {"type": "StockQuote", "symbol": "IBM", "value": 3.5, "at": "2026-01-01T00:00:02Z"},
]


@pytest.fixture(scope="module")
def plan() -> fairlead.Plan:
    return fairlead.compile(RULES)


def test_a_relation_has_its_members_in_signature_order(plan: fairlead.Plan) -> None:
    (relation,) = fairlead.match(plan, EVENTS)
    assert relation.subscription == "Rally"
    assert relation.positions == (1, 0, 2)
    assert [each.type for each in relation.events] == ["EarningsReport", "StockQuote", "StockQuote"]
    assert relation.events[2]["value"] == 3.5
    since = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert relation.emitted == {"symbol": "IBM", "gain": 2.5, "since": since}


def test_dicts_and_tables_of_three_libraries_give_the_same_receipt(plan: fairlead.Plan) -> None:
    table = pa.Table.from_pylist([{"type": "", "symbol": "", "value": None, "at": ""} | each for each in EVENTS])
    receipts = {
        fairlead.match(plan, form).receipt for form in (EVENTS, iter(EVENTS), table, table.to_pandas(), pl.from_arrow(table))
    }
    assert isinstance(table.to_pandas(), pd.DataFrame)
    assert len(receipts) == 1


def test_arrow_has_a_row_a_relation_and_for_one_subscription_the_emitted_attributes_as_columns(plan: fairlead.Plan) -> None:
    result = fairlead.match(plan, EVENTS)
    assert result.to_arrow().column("positions").to_pylist() == [[1, 0, 2]]
    one = result.to_arrow("Rally")
    assert one.schema.field("since").type == pa.timestamp("us", tz="UTC")
    assert one.select(["symbol", "gain"]).to_pylist() == [{"symbol": "IBM", "gain": 2.5}]


@pytest.mark.slow
def test_many_events_run_on_kernels_and_give_what_few_at_a_time_give(plan: fairlead.Plan) -> None:
    day = [each | {"symbol": f"S{n % 50}"} for n in range(20_000) for each in EVENTS]
    whole = fairlead.match(plan, day)
    slow = fairlead.Engine(plan, kernels_from=None)
    ids = [relation.id for columns in read_events(day, plan.catalogue) for relation in slow.feed(columns)]
    assert [relation.id for relation in whole] == ids
    assert len(whole) == len(ids) > 10_000


def test_wrong_arguments_are_refused_with_a_code(plan: fairlead.Plan) -> None:
    with pytest.raises(UsageError, match="A003"):
        fairlead.match(RULES, EVENTS)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="A004"):
        fairlead.match(plan, EVENTS, until="tomorrow")
    with pytest.raises(UsageError, match="A102"):
        fairlead.match(plan, "events.jsonl")
    with pytest.raises(UsageError, match=r"A102 [^\n]*\n  fix: pass one table for all types"):
        fairlead.match(plan, {"StockQuote": pa.table({"symbol": ["IBM"]})})
    with pytest.raises(DataError, match=r"D001 record 1"):
        fairlead.match(plan, [EVENTS[0], {"type": "StockQuota"}])


def test_a_prompt_shows_a_line_and_completes_public_names(plan: fairlead.Plan) -> None:
    """What a notebook prints after each cell, however many relations there are."""
    result = fairlead.match(plan, EVENTS * 50)
    for shown in (result, plan, result.receipt):
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 200
    assert repr(result).startswith(f"Result({len(result)} relations of {result.events} events, receipt ")
    assert "subscriptions ['Rally']" in repr(plan)
    assert {*fairlead.__all__, "spark", "__version__"} <= set(dir(fairlead))
