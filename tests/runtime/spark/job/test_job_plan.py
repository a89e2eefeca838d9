"""The physical shape of a plan, told before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import fairlead
from fairlead import spark as fl
from tests.cli.shop import MARKET
from tests.cli.shop import fairlead as command

SHOP = """
TYPE Order (customer STRING, item STRING, at TIMESTAMP) TIME at
TYPE Shipment (customer STRING, at TIMESTAMP) TIME at
TYPE Visit (page STRING, at TIMESTAMP) TIME at

SUBSCRIPTION Shipped MATCH Order o AND Shipment s WHERE s.at > o.at PER customer WITHIN 1 HOUR
SUBSCRIPTION Twice MATCH Order o[2] WITHIN 1 HOUR
SUBSCRIPTION Forgotten MATCH Order o WITHOUT Shipment s WITHIN 2 HOURS OF o PER customer
"""


def test_keyed_subscriptions_are_spread_and_the_others_say_why_not() -> None:
    shape = fl.explain(fairlead.compile(SHOP), buckets=16)
    parts = {part.subscriptions: part for part in shape.parts}
    shipped, twice, forgotten = parts["Shipped",], parts["Twice",], parts["Forgotten",]
    assert (shipped.form, shipped.tasks, shipped.keys) == ("keyed", 16, {"Order": ("customer",), "Shipment": ("customer",)})
    assert (twice.form, twice.tasks, twice.reason) == ("ordered", 1, "no PER: one total order, one task")
    assert (forgotten.form, forgotten.tasks) == ("nested", 1)
    assert shape.tasks == 18
    assert shape.single == ("Twice", "Forgotten")


def test_what_is_shuffled_is_told_by_type() -> None:
    first, second = fl.explain(fairlead.compile(SHOP), buckets=4).shuffles
    assert first.copies["Visit"] == 0  # nobody reads it
    assert second.copies["Order"] == 3
    assert second.copies["Shipment"] == 2
    assert "Visit" not in second.copies
    streaming = fl.explain(fairlead.compile(SHOP), buckets=4, streaming=True).shuffles[0]
    assert streaming.tasks == "one task that holds rows back and numbers them"


def test_each_subscription_of_a_nested_group_has_its_own_reason() -> None:
    derived = (
        "SUBSCRIPTION Sale MATCH Order o EMIT Sold(customer = o.customer)\nSUBSCRIPTION Sales MATCH Sold s[2] PER customer\n"
    )
    (_, _, nested) = fl.explain(fairlead.compile(SHOP + derived), buckets=4).parts
    assert nested.reasons["Forgotten"].startswith("an absence is decided by the next event of any key")
    assert nested.reasons["Sales"].startswith("it reads derived events")
    assert nested.subscriptions == ("Forgotten", "Sales")  # Sale is spread as if nobody read what it emits


def test_the_shape_is_text_html_and_json() -> None:
    shape = fl.explain(fairlead.compile(SHOP), buckets=4, master="local[2]")
    assert "  Shipped: 4 tasks, keyed\n    why      PER: keys (customer) are spread over buckets" in str(shape)
    assert "    Visit: its place in the order alone: nobody reads it" in str(shape)
    assert "spark.sql.shuffle.partitions = 2" in str(shape)
    assert "<td style='text-align:left'>nested</td>" in shape._repr_html_()
    assert json.loads(json.dumps(shape.to_json()))["tasks"] == 6


def test_the_command_tells_the_same(tmp_path: Path) -> None:
    (tmp_path / "market.fl").write_text(MARKET)
    plan = fairlead.compile(MARKET)
    told = command("spark", "explain", tmp_path / "market.fl", "--buckets", "8")
    assert told.stdout == f"{fl.explain(plan, buckets=8)}\n"
    data = command("spark", "explain", tmp_path / "market.fl", "--buckets", "8", "--stream", "--json")
    assert json.loads(data.stdout) == json.loads(json.dumps(fl.explain(plan, buckets=8, streaming=True).to_json()))
