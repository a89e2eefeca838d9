"""What WITHIN, PER, WITHOUT and overlapping types take away: a trace for each claim of a loss, and a search that finds no
violation of what is said to be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random

import pytest

from fairlead.guarantees import derive
from fairlead.model.events.event import Event
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.options import PAPER_DISPOSALS, PAPER_MATCHINGS, Disposal, Matching
from fairlead.model.plans.plan import Plan
from fairlead.testing.counterexamples.clause_worlds import SECOND, events_of_records
from fairlead.testing.counterexamples.search import MORE_CELLS
from fairlead.testing.properties.checkers import CHECKERS
from fairlead.testing.properties.trace import Trace, trace_of
from tests.guarantees.worlds import by_engine, compiled, terse, trace_from

TYPES = "\n".join(f"TYPE {name} (k INT, x INT, at TIMESTAMP) TIME at" for name in "ABCDN") + "\n"


def verdict(text: str, wanted: Property, name: str = "p1") -> Guarantee:
    return next(each for each in derive(compiled(text))[name] if each.property is wanted)


def subscriptions(*texts: str) -> str:
    return TYPES + "\n".join(f"SUBSCRIPTION p{at}\n{text}" for at, text in enumerate(texts, 1))


PAIR = "MATCH A a AND B b"
WINDOW = "WITHIN 5 SECONDS"
ABSENT = "WITHOUT N n WITHIN 3 SECONDS OF a WHERE n.x = a.x"

LOST = {
    "an event leaves the window before its partner comes": (
        Property.EVENT_VALIDITY,
        subscriptions(f"{PAIR}\n{WINDOW}"),
        "A:0,0,0 " + " ".join(f"B:0,0,{at}" for at in range(10, 70, 10)),
    ),
    "an event far ahead moves the window past the rest": (
        Property.CONJUNCTION_VALIDITY,
        subscriptions(f"{PAIR}\n{WINDOW}"),
        "A:0,0,100 " + "A:0,0,1 B:0,0,1 " * 3,
    ),
    "a lone event that comes too late is not delivered": (
        Property.CONJUNCTION_VALIDITY,
        subscriptions(f"MATCH A a\n{WINDOW}"),
        "A:0,0,100 A:0,0,1 A:0,0,2 A:0,0,3",
    ),
    "nothing comes after the limit": (
        Property.CONJUNCTION_VALIDITY,
        subscriptions(f"{PAIR}\nLIMIT 2"),
        " ".join(f"A:0,0,{at} B:0,0,{at}" for at in range(6)),
    ),
    "an event whose relation is beyond the limit": (
        Property.EVENT_VALIDITY,
        subscriptions("MATCH A a\nPER k\nLIMIT 1 PER KEY"),
        " ".join(f"A:0,0,{at}" for at in range(8)),
    ),
    "the extension passes over relations, so its first two are others": (
        Property.COVERING_AGREEMENT,
        subscriptions(*(f"MATCH {each}\nMATCHING RECENT\nLIMIT 2" for each in ("A a", "A a AND C c"))),
        "A:0,0,0 A:0,0,1 A:0,0,2 C:0,0,3",
    ),
    "the extension's clock is later": (
        Property.COVERING_AGREEMENT,
        subscriptions(f"{PAIR}\n{WINDOW}", f"{PAIR} AND C c\n{WINDOW}"),
        "A:0,0,0 B:0,0,5 C:0,0,6 A:0,0,6",
    ),
    "a cancelled relation has consumed a free event": (
        Property.EVENT_VALIDITY,
        subscriptions(f"{PAIR}\n{ABSENT}"),
        "A:0,1,0 B:0,0,0 N:0,1,1 " + " ".join(f"A:0,2,{at}" for at in (10, 20, 30, 40)) + " N:0,9,90",
    ),
    "the recent event is the unlucky one every time": (
        Property.CONJUNCTION_VALIDITY,
        subscriptions(f"{PAIR}\n{ABSENT}\nMATCHING RECENT"),
        " ".join(f"A:0,2,{at} A:0,1,{at} B:0,0,{at} N:0,1,{at}" for at in (10, 20, 30, 40)) + " N:0,9,90",
    ),
    "a condition between members makes the same unlucky choice every time": (
        Property.CONJUNCTION_VALIDITY,
        subscriptions(f"{PAIR}\nWHERE a.k < b.k\n{ABSENT}"),
        " ".join(f"A:1,1,{t} A:9,2,{t} A:1,1,{t} B:5,0,{t} B:10,0,{t} N:0,1,{t}" for t in range(10, 90, 10)) + " N:0,9,99",
    ),
    "deadlines run against the order": (
        Property.TYPE_FIFO_ORDER,
        subscriptions(f"MATCH A a\n{ABSENT}"),
        "A:0,1,10 A:0,1,5 N:0,9,20",
    ),
    "times that have passed run against the order": (
        Property.TYPE_FIFO_ORDER,
        subscriptions("MATCH A a\nAFTER 3 SECONDS OF a"),
        "A:0,1,10 A:0,1,5 N:0,9,20 A:0,0,20",
    ),
    "an extension is told the time by its further events": (
        Property.COVERING_AGREEMENT,
        subscriptions("MATCH A a\nAFTER 3 SECONDS OF a", "MATCH A a AND C c\nAFTER 3 SECONDS OF a"),
        "A:0,1,0 C:0,0,1 C:0,0,9",
    ),
    "a relation waits for a time that does not come": (
        Property.EVENT_VALIDITY,
        subscriptions(f"{PAIR}\nAFTER 3 SECONDS OF a"),
        "A:0,1,10 B:0,0,7 " + "A:0,1,0 B:0,0,0 " * 8,
    ),
    "the recent event waits for a time that does not come, every time": (
        Property.CONJUNCTION_VALIDITY,
        subscriptions(f"{PAIR}\nAFTER 3 SECONDS OF a\nMATCHING RECENT"),
        "A:0,1,0 A:0,1,10 B:0,0,0 " * 8,
    ),
    "an extension decides an absence earlier": (
        Property.COVERING_AGREEMENT,
        subscriptions(f"MATCH A a\n{ABSENT}", f"MATCH A a AND C c\n{ABSENT}"),
        "A:0,1,0 C:0,0,9 N:0,1,2 N:0,9,20",
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_a_clause_that_is_said_to_lose_a_property_does(name: str) -> None:
    wanted, text, story = LOST[name]
    found = verdict(text, wanted)
    assert found.verdict is Verdict.LOST
    assert found.clause.startswith(
        ("WITHIN 5 SECONDS", "WITHOUT N n WITHIN 3 SECONDS OF a", "AFTER", "MATCHING", "WHERE", "LIMIT")
    )
    assert CHECKERS[wanted](trace_from(text, terse(story, "k", "x", "at"))) is not None


def test_per_loses_order_across_keys_only() -> None:
    text = subscriptions(f"{PAIR}\nPER k", "MATCH A a\nPER k")
    trace = trace_from(text, terse("A:1,0,0 A:2,0,1 B:2,0,2 B:1,0,3", "k", "x", "at"))
    for wanted in (Property.TYPE_FIFO_ORDER, Property.TYPE_TOTAL_ORDER, Property.CONJUNCTION_TOTAL_ORDER):
        assert CHECKERS[wanted](trace) is not None
        assert verdict(text, wanted).verdict is Verdict.PER_KEY
        assert verdict(text, wanted).clause == "PER k"
        assert verdict(text, wanted, "p2").verdict is Verdict.KEPT  # a single event waits for nobody
        assert all(CHECKERS[wanted](part) is None for part in by_key(trace))


OVERLAP = "TYPE Z (x INT)\nTYPE B EXTENDS Z (y INT)\nSUBSCRIPTION p1\nMATCH B b AND Z z\n"


def test_overlapping_types_lose_the_order_of_a_type() -> None:
    text = OVERLAP + "WHERE b.x = 2 AND z.x = 1"
    records = [{"type": "Z", "x": 1}, *({"type": "B", "x": x, "y": 0} for x in (1, 2, 2))]
    trace = trace_from(text, records)
    assert CHECKERS[Property.TYPE_FIFO_ORDER](trace) is not None
    assert verdict(text, Property.TYPE_FIFO_ORDER).clause == "MATCH B AND Z"


def test_overlapping_types_deliver_twice_under_first_prefix() -> None:
    text = OVERLAP + "DISPOSAL FIRST PREFIX"
    trace = trace_from(text, [{"type": "B", "x": x, "y": 0} for x in range(4)])
    assert CHECKERS[Property.NO_DUPLICATION](trace) is not None
    assert verdict(text, Property.NO_DUPLICATION).verdict is Verdict.LOST
    assert verdict(OVERLAP, Property.NO_DUPLICATION).verdict is Verdict.KEPT


def test_a_union_keeps_the_order_across_its_members() -> None:
    text = TYPES + "EVENT UNION Market = A + B\nSUBSCRIPTION p1\nMATCH Market m AND C c"
    assert verdict(text, Property.TYPE_FIFO_ORDER).verdict is Verdict.KEPT


def by_key(trace: Trace, bucket_us: int | None = None) -> list[Trace]:
    """The part of each k; with `bucket_us`, of each bucket of the time."""

    def key_of(event: Event) -> int:
        return int(event.raw("k") if bucket_us is None else (event.time or 0) // bucket_us)

    return [
        replace(
            trace,
            multicasts=tuple(each for each in trace.multicasts if key_of(each.event) == key),
            deliveries=tuple(each for each in trace.deliveries if key_of(each.events[0]) == key),
        )
        for key in sorted({key_of(each.event) for each in trace.multicasts})
    ]


BASES = (
    ("A a", ""),
    ("A a AND B b", ""),
    ("A a AND B b", "WHERE a.x < b.x"),
    ("A a THEN B b", ""),
    ("A a[2] AND B b", ""),
    ("A a[2] AND B b", "WHERE a[2].x = 1"),
    ("A a[2]", "WHERE a[1].x < a[2].x"),
    ("A a AND B b AND C c", "WHERE b.x = c.x"),
)
CLAUSES = (
    "PER k",
    "WITHIN 4 SECONDS",
    "WITHOUT N n WITHIN 2 SECONDS OF a[1] WHERE n.x = a[1].x",
    "WITHOUT N n WITHIN 2 SECONDS OF a[1]\nPER k\nWITHIN 4 SECONDS",
    "AFTER 2 SECONDS OF a[1]",
    "AFTER 2 SECONDS OF a[1]\nPER k\nWITHIN 4 SECONDS",
    "WITHOUT N n BETWEEN a[1] AND b",
    "WITHOUT N n BETWEEN a[1] AND b WHERE n.x = b.x\nPER k",
    "WITHOUT N n BEFORE a[1] WITHIN 2 SECONDS",
    "WITHOUT N n BEFORE a[1] WITHIN 2 SECONDS WHERE n.x = a[1].x\nPER k",
    "WITHOUT N n BEFORE a[1] WHERE n.x = b.x",
    "WITHOUT B n BEFORE a[1] WITHIN 2 SECONDS",
    "WITHOUT A n BEFORE a[1] WITHIN 2 SECONDS WHERE n.x = a[1].x",
    "RETAIN a 2 EVENTS",
    "RETAIN a 3 EVENTS BATCH",
    "RETAIN a 2 SECONDS",
    "RETAIN a 4 SECONDS BATCH\nPER k",
    "PER bucket(at, 4 SECONDS)",
    "LIMIT 2",
    "PER k\nLIMIT 1 PER KEY",
    "PER k\nLIMIT 2",
)
BUCKET = 4
"""Seconds."""
STREAMS = 4
"""For each base, clause and cell: 8 × 19 × 16 × 4 streams, less the combinations that do not fit, about 9,000 cases."""


@lru_cache(maxsize=256)
def rules(pattern: str, where: str, clause: str, matching: Matching, disposal: Disposal) -> str:
    if "[" not in pattern:
        clause = clause.replace("a[1]", "a")
    options = f"MATCHING {matching.words}\nDISPOSAL {disposal.words}"
    extended = f"({pattern}) AND D d" if "THEN" in pattern else f"{pattern} AND D d"
    texts = [f"MATCH {each}\n{where}\n{clause}\n{options}" for each in (pattern, pattern, extended)]
    return subscriptions(*texts, f"MATCH A a\n{options}")


def stream(chance: Random, size: int) -> list[dict[str, int | str]]:
    time, found = 10, []
    for _ in range(size):
        time += chance.choice((0, 0, 1, 1, 2, -3))
        found.append({"type": chance.choice("AAABBBCDN"), "k": chance.randrange(2), "x": chance.randrange(3), "at": time})
    return found


FITTING = [
    (base, clause)
    for base in BASES
    for clause in CLAUSES
    if "B b" in base[0] or not any(each in clause for each in ("AND b", "b.x"))
]
"""A clause that names the member b goes with the patterns that have it."""


@pytest.mark.sampled
@pytest.mark.parametrize(("base", "clause"), FITTING, ids=lambda each: each if isinstance(each, str) else " ".join(each))
def test_what_is_said_to_be_kept_is_never_violated(base: tuple[str, str], clause: str) -> None:
    chance = Random(f"{base} {clause}")
    for matching in PAPER_MATCHINGS:
        for disposal in PAPER_DISPOSALS:
            text = rules(*base, clause, matching, disposal)
            plan = compiled(text)
            verdicts = derive(plan)
            for _ in range(STREAMS):
                holds_what_is_said(text, plan, verdicts, chance)


def holds_what_is_said(text: str, plan: Plan, verdicts: Mapping[str, Sequence[Guarantee]], chance: Random) -> None:
    records = stream(chance, 16)
    publishers = [chance.choice(("p4", "p4", "p5")) for _ in records]
    violates_only_what_is_lost(text, plan, verdicts, records, publishers)


def violates_only_what_is_lost(
    text: str,
    plan: Plan,
    verdicts: Mapping[str, Sequence[Guarantee]],
    records: list[dict[str, int | str]],
    publishers: list[str],
) -> set[Property]:
    """What is violated."""
    events = events_of_records(plan, records)
    trace = trace_of(plan, events, by_engine(plan, events), publishers)
    violated = set()
    for wanted in Property:
        found = CHECKERS[wanted](trace)
        if found is None:
            continue
        violated.add(wanted)
        said = {g.verdict for name in verdicts for g in verdicts[name] if g.property is wanted}
        assert said != {Verdict.KEPT}, (text, records, found)
        if Verdict.PER_KEY in said and Verdict.LOST not in said:
            parts = by_key(trace, BUCKET * SECOND if "bucket(" in text else None)
            assert all(CHECKERS[wanted](part) is None for part in parts), (text, records, found)
    return violated


TABLES = ("A a AND T t", "A a AND T t\nWHERE a.x = t.x", "A a[2] AND T t", "A a AND C c AND T t", "C c AND T t\nPER k")
"""With a table of B. Extensions follow."""


@pytest.mark.sampled
@pytest.mark.parametrize("pattern", TABLES)
def test_what_is_said_to_be_kept_with_a_table_is_never_violated(pattern: str) -> None:
    chance = Random(pattern)
    elements, _, ends = pattern.partition("\n")
    for matching in PAPER_MATCHINGS:
        for disposal in PAPER_DISPOSALS:
            options = f"{ends}\nMATCHING {matching.words}\nDISPOSAL {disposal.words}"
            texts = [f"MATCH {each}\n{options}" for each in (elements, elements, f"{elements} AND W w")]
            text = f"TYPE W (k INT, x INT, at TIMESTAMP) TIME at\nTABLE T KEY (k) FROM B\n{subscriptions(*texts)}"
            for _ in range(STREAMS):
                holds_what_is_said(text, compiled(text), derive(compiled(text)), chance)


@pytest.mark.sampled
@pytest.mark.parametrize(("base", "clause"), FITTING, ids=lambda each: each if isinstance(each, str) else " ".join(each))
def test_what_is_said_to_be_kept_with_further_options_is_never_violated(base: tuple[str, str], clause: str) -> None:
    chance = Random(f"further {base} {clause}")
    for matching, disposal, *keeps in chance.sample(MORE_CELLS, 12):
        named = " 2" if disposal is Disposal.ADVANCE else " a" if disposal.upto else ""
        options = f"MATCHING {matching.words}\nDISPOSAL {disposal.words}{named}" + ("\nKEEP a" if keeps else "")
        text = rules(*base, clause, Matching.FIRST, Disposal.PREFIX_INFIX)
        text = text.replace("MATCHING FIRST\nDISPOSAL PREFIX INFIX", options)
        plan = compiled(text)
        holds_what_is_said(text, plan, derive(plan), chance)


@pytest.mark.parametrize("disposal", [Disposal.PREFIX_INFIX, Disposal.INFIX, Disposal.FIRST_PREFIX])
@pytest.mark.parametrize("clause", [ABSENT, "AFTER 3 SECONDS OF a"], ids=["WITHOUT", "AFTER"])
def test_every_event_gets_its_turn_under_first_if_nothing_ties_the_members(disposal: Disposal, clause: str) -> None:
    """The case in which conjunction validity survives: periods with a set that nothing cancels, and whose time passes, keep
    delivering."""
    text = subscriptions(f"{PAIR}\n{clause}\nDISPOSAL {disposal.words}")
    assert verdict(text, Property.CONJUNCTION_VALIDITY).verdict is Verdict.KEPT
    chance = Random(disposal.code)
    for _ in range(25):
        words = ("A:0,1", "A:0,2", "B:0,0", "N:0,1") if clause is ABSENT else ("A:0,1", "A:0,2", "B:0,0")
        period = [chance.choice(words) for _ in range(5)] + ["A:0,2", "B:0,0", "N:0,1"]
        chance.shuffle(period)
        late = {"A:0,1": 1_000} if clause is not ABSENT else {}  # of these A the time does not pass
        story = " ".join(f"{word},{10 * at + late.get(word, 0)}" for at in range(1, 41) for word in period)
        trace = trace_from(text, terse(story, "k", "x", "at"), run=by_engine)
        assert trace.deliveries[-1].time > 0.5 * trace.multicasts[-1].time
