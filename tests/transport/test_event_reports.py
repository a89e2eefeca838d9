"""A report says which event took no part and why: in words, as JSON, as a CloudEvent; and outputs have signs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from fairlead import compile, match
from fairlead.cli.display.screen import verdict_words
from fairlead.cli.files.deliveries import read_deliveries
from fairlead.model.events.verdict import EventReport, EventVerdict
from fairlead.model.relations.relation import MINUS, PLUS
from fairlead.transport.events import read_events
from fairlead.transport.output.delivery_events import relation_event, report_event
from fairlead.transport.output.relation_files import open_relations

TYPES = "TYPE Reading (sensor INT, at TIMESTAMP) TIME at; TYPE Mark (n INT);"
RULES = f"{TYPES} SUBSCRIPTION Each MATCH Reading r"
ORDERED = f"{TYPES} ORDER BY at DELAY 1 SECOND LATE REVISE WITHIN 1 MINUTE SUBSCRIPTION Each MATCH Reading r"
EVENTS = [
    {"type": "Reading", "sensor": 3, "at": "2026-01-31T10:00:00Z", "_source": "plc-1", "_sequence": 12},
    {"type": "Mark", "n": 7},
]


def reported(*verdicts: EventVerdict) -> tuple[EventReport, ...]:
    catalogue = compile(RULES).catalogue
    (columns,) = read_events(EVENTS, catalogue)
    pairs = zip(verdicts, columns.events(catalogue), strict=True)
    return tuple(EventReport(verdict, event, ("Each",)) for verdict, event in pairs)


def test_a_report_names_the_event_and_the_verdict() -> None:
    late, repeated = reported(EventVerdict.LATE, EventVerdict.REPEATED)
    assert late.to_json() == {
        "verdict": "late",
        "type": "Reading",
        "source": "plc-1",
        "sequence": 12,
        "position": 0,
        "time": "2026-01-31T10:00:00Z",
        "subscriptions": ["Each"],
        "event": {"type": "Reading", "sensor": 3, "at": "2026-01-31T10:00:00Z"},
    }
    assert (repeated.to_json()["time"], repeated.to_json()["sequence"], repeated.to_json()["position"]) == (None, None, 1)
    assert str(late) == "late: Reading 12 of plc-1, 2026-01-31T10:00:00Z, position 0"
    assert str(repeated) == "repeated: Mark, position 1"


def test_notices_are_counted_verdict_words() -> None:
    assert verdict_words(Counter()) == ""
    assert verdict_words(Counter({"ahead": 1})) == "1 event ahead"
    assert (
        verdict_words(Counter({"ahead": 1, "late": 12_000, "out of order": 2})) == "12,000 events late, 2 out of order, 1 ahead"
    )


def test_a_report_is_a_cloud_event_with_an_id_of_its_own() -> None:
    plan = compile(RULES)
    found = [report_event(each, plan) for each in reported(EventVerdict.OUT_OF_ORDER, EventVerdict.LATE)]
    assert [each["id"] for each in found] == ["out-of-order-Each-Reading-plc-1-12", "late-Each-Mark-1"]
    assert {each["type"] for each in found} == {"fairlead.verdict"}
    assert {each["source"] for each in found} == {f"/plans/{plan.digest}"}
    assert (found[0]["subject"], found[0]["time"], "time" in found[1]) == ("Reading", "2026-01-31T10:00:00Z", False)
    assert found[1]["data"] == reported(EventVerdict.OUT_OF_ORDER, EventVerdict.LATE)[1].to_json()


def test_a_delivery_that_takes_a_relation_back_is_another_cloud_event() -> None:
    plan = compile(ORDERED)
    (relation,) = match(compile(RULES), EVENTS)
    found = [relation_event(each, plan, number) for number, each in enumerate([relation, relation.taken_back(), relation], 1)]
    assert [each["type"] for each in found] == ["fairlead.relation", "fairlead.retraction", "fairlead.relation"]
    assert len({each["id"] for each in found}) == 3
    assert [each["data"].get("sign", 1) for each in found] == [1, -1, 1]
    assert relation_event(relation, compile(RULES), 4)["id"] == relation.id  # nothing is taken back, so once is enough


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_rules_that_revise_write_every_sign(tmp_path: Path, ending: str) -> None:
    (relation,) = match(compile(RULES), EVENTS)
    path = str(tmp_path / f"found.{ending}")
    with open_relations(path, compile(ORDERED)) as file:
        file.write([relation, relation.taken_back(), relation])
    assert [each.sign for each in read_deliveries(path)] == [PLUS, MINUS, PLUS]
    if ending == "jsonl":
        assert [json.loads(line)["sign"] for line in Path(path).read_text().splitlines()] == [1, -1, 1]
    with open_relations(path, compile(RULES)) as file:
        file.write([relation])
    assert [each.sign for each in read_deliveries(path)] == [PLUS]
    assert ending != "jsonl" or "sign" not in Path(path).read_text()


def test_reports_between_relations_are_no_relations(tmp_path: Path) -> None:
    (relation,) = match(compile(RULES), EVENTS)
    (late, _) = reported(EventVerdict.LATE, EventVerdict.LATE)
    path = tmp_path / "found.jsonl"
    path.write_text("".join(f"{json.dumps(each.to_json())}\n" for each in (late, relation, late)))
    assert [each.id for each in read_deliveries(str(path))] == [relation.id]
