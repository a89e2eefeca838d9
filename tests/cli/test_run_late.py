"""`fairlead run` with late events: what is revised, what is reported, and that runs over pieces of the input are one run."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from fairlead import Run, compile, match
from fairlead.deliver.fold import remaining
from fairlead.errors import FairleadWarning
from fairlead.model.relations.identity import from_hex
from fairlead.model.relations.relation import Relation
from fairlead.runtime.event_time import frontier_groups
from tests.cli.shop import fairlead
from tests.runtime.event_time.sequences import PLANS, TYPES, Record, at, judged, read, sequence

ABSENCE = PLANS["absence"].replace(" S ", " V ")
RULES = f"{TYPES} ORDER BY at DELAY 2 SECONDS LATE REVISE WITHIN 6 SECONDS {PLANS['chain']} {ABSENCE}"


def lines(path: Path, records: list[Record]) -> Path:
    path.write_text("".join(json.dumps(each | {"at": each["at"].isoformat()}, default=str) + "\n" for each in records))
    return path


def words(told: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(each["id"], each.get("sign", 1)) for each in told]


def folded(told: list[dict[str, Any]]) -> list[str]:
    ids = from_hex([each["id"] for each in told])
    for place, each in enumerate(told):
        if each.get("sign", 1) < 0:
            ids[place] = ~ids[place]
    return [told[place]["id"] for place in remaining(ids).tolist()]


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(3))
def test_runs_over_pieces_are_one_run_and_fold_to_the_sorted_events(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    (tmp_path / "rules.fl").write_text(RULES)
    records = sequence(random, 1_500, late=0.1)
    plan = compile(RULES)
    whole, receipt = tmp_path / "whole.jsonl", tmp_path / "whole.json"
    events = lines(tmp_path / "all.jsonl", records)
    shown = fairlead("run", tmp_path / "rules.fl", "--events", events, "--out", whole, "--receipt", receipt, "--json")
    assert shown.exit_code == 0, shown.output
    told = [json.loads(line) for line in whole.read_text().splitlines()]
    accepted = judged(plan, records).accepted(records)
    assert sorted(folded(told)) == sorted(each.id for each in match(plan, accepted))
    counts = json.loads(shown.stdout)
    gone = sum(each.get("sign") == -1 for each in told)
    assert gone > 10
    assert counts["revisions"]["retracted"] == gone
    assert sum(counts["relations"].values()) == len(told) - 2 * gone
    assert counts["deliveries"] == len(told)

    parts, low = [], 0
    while low < len(records):
        high = low + random.choice((1, 40, 400, 900))
        piece = lines(tmp_path / "piece.jsonl", records[low:high])
        out = tmp_path / "out.jsonl"
        more = ["--batch-rows", str(random.choice((1, 7, 1000)))] if high - low <= 40 else []
        args = ("run", tmp_path / "rules.fl", "--events", piece, "--out", out, "--state", tmp_path / "state", *more)
        result = fairlead(*args, "--receipt", tmp_path / "receipt.json")
        assert result.exit_code == 0, result.output
        parts += [json.loads(line) for line in out.read_text().splitlines()]
        low = high
    assert parts == told[: len(parts)]  # the end of the whole run ends its last round, and delivers what is held back
    assert len(parts) > len(told) / 2
    first = json.loads((tmp_path / "receipt.json").read_text())
    assert first["count"] == len(parts)
    assert first["digest"] == json.loads(receipt.read_text())["samples"][len(parts) - 1] if first["stride"] == 1 else True


def test_parquet_has_a_sign_where_the_rules_revise_and_the_summary_counts(tmp_path: Path) -> None:
    records = [event("A", 10), event("B", 20), event("B", 30), event("A", 22), event("B", 29), event("B", 50)]
    for order, signed in (("LATE REVISE WITHIN 20 SECONDS", True), ("LATE TAG", False)):
        rules = tmp_path / "rules.fl"
        rules.write_text(f"{TYPES} ORDER BY at DELAY 1 SECOND {order} SUBSCRIPTION S MATCH A a THEN B b MATCHING RECENT")
        events, out, late = lines(tmp_path / "e.jsonl", records), tmp_path / "out.parquet", tmp_path / "late.jsonl"
        result = fairlead("run", rules, "--events", events, "--out", out, "--late", late)
        assert result.exit_code == 0, result.output
        table = pq.read_table(out)
        assert ("sign" in table.column_names) == signed
        if signed:
            assert "2 relations (0 retracted, 1 added)" in result.stderr
            assert table.column("sign").to_pylist() == [1, 1]
            assert late.read_text() == ""
        else:
            assert [json.loads(each)["_verdict"] for each in late.read_text().splitlines()] == ["late"]
            assert "1 late, 1 relation in" in result.stderr


def test_a_relation_that_is_taken_back_is_written_with_its_sign(tmp_path: Path) -> None:
    rules = tmp_path / "rules.fl"
    rules.write_text(f"{TYPES} ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 20 SECONDS {PLANS['absence']}")
    events = lines(tmp_path / "e.jsonl", [event("A", 10), event("A", 20), event("A", 21), event("B", 11)])
    out, table = tmp_path / "out.jsonl", tmp_path / "out.parquet"
    result = fairlead("run", rules, "--events", events, "--out", out, "--json")
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert [each.get("sign") for each in told] == [1, -1]
    assert told[0] | {"sign": -1} == told[1]
    assert json.loads(result.stdout)["relations"] == {"S": 0}
    assert json.loads(result.stdout)["revisions"] == {"retracted": 1, "added": 0}
    fairlead("run", rules, "--events", events, "--out", table)
    assert pq.read_table(table).column("sign").to_pylist() == [1, -1]


@pytest.mark.parametrize("delay", ["%s", "DELAY 1 SECOND %s", "DELAY 1 SECOND %s LATE REVISE WITHIN 5 SECONDS"])
def test_events_ahead_of_their_storage_take_no_part_in_files_and_tables(tmp_path: Path, delay: str) -> None:
    text = f"{TYPES} ORDER BY at {delay % 'AHEAD 2 SECONDS'} SUBSCRIPTION S MATCH A a THEN B b"
    (tmp_path / "rules.fl").write_text(text)
    records = [event("A", 10, 10), event("B", 99, 11), event("B", 13, 11), event("B", 14.000001, 12), event("C", 20, None)]
    events, late = lines(tmp_path / "e.jsonl", records), tmp_path / "late.jsonl"
    result = fairlead("run", tmp_path / "rules.fl", "--events", events, "--late", late, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["relations"], told["ahead"], told["unstored"]) == ({"S": 1}, 2, 0)
    assert [(each["_verdict"], each["type"]) for each in map(json.loads, late.read_text().splitlines())] == [("ahead", "B")] * 2
    plan = compile(text)
    (found,) = match(plan, records)
    assert found.members[1].to_json()["at"] == "2026-01-01T00:00:13Z"
    without = [{key: value for key, value in each.items() if key != "_stored"} for each in records]
    with pytest.warns(FairleadWarning, match=r"W102 .* 5 events do not tell when they were stored"):
        assert len(match(plan, without)) == 1
    lines(tmp_path / "e.jsonl", without)
    assert "AHEAD: 5 events without the time of storage" in fairlead("run", tmp_path / "rules.fl", "--events", events).stdout


def test_what_is_no_time_of_storage_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.fl").write_text(f"{TYPES} SUBSCRIPTION S MATCH A a")
    (tmp_path / "e.jsonl").write_text(
        json.dumps({"type": "A", "k": 1, "x": 1, "at": "2026-01-01T00:00:00Z", "_stored": "soon"})
    )
    result = fairlead("run", tmp_path / "rules.fl", "--events", tmp_path / "e.jsonl")
    assert "D010" in result.output
    assert "`_stored`" in result.output


def test_new_rules_start_where_the_run_is_and_do_not_revise_what_was_before(tmp_path: Path) -> None:
    rules, state = tmp_path / "rules.fl", tmp_path / "state"
    order = f"{TYPES} ORDER BY at DELAY 1 SECOND LATE REVISE WITHIN 60 SECONDS"
    rules.write_text(f"{order} SUBSCRIPTION S MATCH A a THEN B b")
    first = lines(tmp_path / "e.jsonl", [event("A", 10), event("B", 20), event("A", 30)])
    fairlead("run", rules, "--events", first, "--state", state)
    rules.write_text(f"{order} SUBSCRIPTION S MATCH A a THEN B b SUBSCRIPTION T MATCH B b THEN A a")
    late, out = tmp_path / "late.jsonl", tmp_path / "out.jsonl"
    second = lines(tmp_path / "e.jsonl", [event("A", 5), event("B", 31), event("A", 40), event("A", 50)])
    result = fairlead("run", rules, "--events", second, "--state", state, "--late", late, "--out", out)
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["_verdict"] for line in late.read_text().splitlines()] == ["late"]
    names = [json.loads(line)["subscription"] for line in out.read_text().splitlines()]
    assert names == ["S", "T"]


def test_a_run_in_python_tells_verdicts_and_signs() -> None:
    plan, told, found = compile(RULES), [], list[Relation]()
    records = sequence(Random(5), 400, late=0.2)
    run = Run(plan, late=lambda verdicts: told.extend(verdicts.verdicts))
    for columns in read(plan, records):
        found += run.feed(columns)
    found += run.finish()
    assert run.receipt.count == len(found)
    assert sum(run.found.values()) == sum(each.sign for each in found)
    shares = [[each for each in records if each["type"] in (*group.types, "Heartbeat")] for group in frontier_groups(plan)]
    wanted = [verdict for share in shares for verdict in judged(plan, share).verdicts]
    assert sorted(map(str, told)) == sorted(str(each) for each in wanted if each is not None and each != "in order")


def event(name: str, seconds: float, stored: float | None = 0) -> Record:
    made: Record = {"type": name, "k": 1, "x": 1, "at": at(seconds)}
    return made if stored == 0 else made | {"_stored": None if stored is None else at(stored)}


def test_why_names_the_late_event_that_took_a_relation_back(tmp_path: Path) -> None:
    rules = tmp_path / "rules.fl"
    rules.write_text(f"{TYPES} ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 60 SECONDS {PLANS['between']}")
    records = [event("A", 10), event("B", 20), event("A", 30), event("C", 25), event("C", 15), event("C", 5)]
    events, out = lines(tmp_path / "e.jsonl", records), tmp_path / "out.jsonl"
    fairlead("run", rules, "--events", events, "--out", out)
    first, last = [json.loads(line) for line in out.read_text().splitlines()]
    assert (first["id"], last["sign"]) == (last["id"], -1)
    shown = fairlead("why", rules, "--events", events, "--relation", first["id"][:8])
    assert shown.exit_code == 0, shown.output
    assert [line.split(":")[0] for line in shown.stdout.splitlines()[1:]] == [
        "  delivered at event 2 of the input",
        "  taken back at event 5 of the input",
        "    by the late C at 4",
    ]
    told = json.loads(fairlead("why", rules, "--events", events, "--relation", first["id"], "--json").stdout)
    assert [each.get("causes", [{}])[0].get("position") for each in told["history"]] == [None, 4]


@pytest.mark.parametrize(
    ("order", "asked", "problem"),
    [
        ("ORDER BY at DELAY 1 SECOND", ("--relation", "zz"), "A298 no relation has an id that begins with 'zz'"),
        ("ORDER BY at DELAY 1 SECOND", ("--relation", ""), "several relations have"),
        ("ORDER BY at", ("--relation", "0"), "A298 --relation is about rules with ORDER BY … DELAY"),
        ("ORDER BY at DELAY 1 SECOND", (), "name an event with --at, or a relation with --relation"),
        ("ORDER BY at DELAY 1 SECOND", ("--relation", "0", "--at", "1"), "name an event with --at"),
    ],
)
def test_why_needs_one_relation_or_one_event(tmp_path: Path, order: str, asked: tuple[str, ...], problem: str) -> None:
    (tmp_path / "rules.fl").write_text(f"{TYPES} {order} SUBSCRIPTION S MATCH A a")
    events = lines(tmp_path / "e.jsonl", [event("A", 10), event("A", 20)])
    result = fairlead("why", tmp_path / "rules.fl", "--events", events, *asked)
    assert result.exit_code == 2
    assert problem in " ".join(result.output.split())


@pytest.mark.parametrize("order", ["t", "at, t"])
def test_an_event_without_a_place_in_the_order_is_a_bad_record(tmp_path: Path, order: str) -> None:
    rules, late = tmp_path / "rules.fl", tmp_path / "late.jsonl"
    rules.write_text(f"TYPE A (t TIMESTAMP, at TIMESTAMP) TIME at ORDER BY {order} DELAY 1 SECOND SUBSCRIPTION S MATCH A a")
    times = [at(1).isoformat(), None, at(2).isoformat()]
    events = tmp_path / "e.jsonl"
    events.write_text("".join(json.dumps({"type": "A", "t": t, "at": at(1).isoformat()}) + "\n" for t in times))
    stopped = fairlead("run", rules, "--events", events, "--out", tmp_path / "out.jsonl")
    assert "D019" in str(stopped.exception) + stopped.output
    assert not (tmp_path / "out.jsonl").exists()
    skipped = fairlead(
        "run", rules, "--events", events, "--out", tmp_path / "out.jsonl", "--late", late, "--on-bad", "skip", "--quiet"
    )
    assert skipped.exit_code == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    assert [json.loads(each)["_verdict"] for each in late.read_text().splitlines()] == ["rejected"]


SEVERAL = {
    "apart": "SUBSCRIPTION S MATCH A a THEN B b PER k SUBSCRIPTION T MATCH A a THEN C c PER k",
    "nested": "SUBSCRIPTION S MATCH A a THEN B b SUBSCRIPTION T MATCH A a THEN B b THEN C c SUBSCRIPTION U MATCH C c[2]",
    "chain": "SUBSCRIPTION S MATCH A a THEN B b EMIT D (k = a.k) SUBSCRIPTION T MATCH D d THEN C c SUBSCRIPTION U MATCH A a[2]",
}


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("seed", range(2))
def test_why_says_for_which_subscriptions_an_event_is_late(name: str, seed: int, tmp_path: Path) -> None:
    """Each subscription has the verdict that it has alone, for every event, wherever that has a position."""
    random, order = Random(f"{name} {seed}"), f"{TYPES} ORDER BY at DELAY 2 SECONDS "
    plan = compile(order + SEVERAL[name])
    groups = frontier_groups(plan)
    reads = {subscription: group.types for group in groups for subscription in group.names}
    late: dict[str, set[int]] = {}
    while not any(late[one] - late[other] for one in late for other in late if set(reads[one]) & set(reads[other])):
        records: list[Record] = [
            {"type": random.choice("ABC"), "k": 0, "x": number, "at": at(max(0, number - random.choice((0, 0, 3, 6))))}
            | {"_source": "p", "_sequence": number}
            for number in range(20)
        ]
        for group in groups:
            share = [each for each in records if each["type"] in group.types]
            pairs = zip(share, judged(plan, share).verdicts, strict=True)
            mine = {each["x"] for each, verdict in pairs if verdict == "late"}
            late |= dict.fromkeys(group.names, mine)
    (tmp_path / "rules.fl").write_text(order + SEVERAL[name])
    events = lines(tmp_path / "e.jsonl", records)
    sorted_ones = sorted(
        (each for each in records if any(each["type"] in reads[one] and each["x"] not in late[one] for one in reads)),
        key=lambda each: (each["at"], each["_sequence"]),
    )
    for place, each in enumerate(sorted_ones):
        done = fairlead("why", tmp_path / "rules.fl", "--events", events, "--at", str(place), "--json")
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert told["event"]["x"] == each["x"]
        found = {one["subscription"]: one["verdict"] for one in told["findings"]}
        assert found.keys() == reads.keys()
        for subscription, verdict in found.items():
            if verdict != "not read":
                assert (verdict == "late") == (each["x"] in late[subscription]), (each, subscription)
