"""The same day, live: published to a log, followed by desks that come and go, and matched by Spark over the same events.

1. A server of our own keeps the log. Two desks subscribe, each a process of its own, and the day is published, in two topics.
   One event is published late: the first cancel of a planted spoofing with several layers.
2. After three quarters of the day desk-2 goes home. It comes back, and desk-3 joins from the state that desk-2 has saved; then
   the rest is published.
3. What desk-1 delivered without the late event, and how it was revised, is shown. Receipts are compared over the wire.
4. The log is exported. One process reads the file in the order of the log, and revises too; Spark sorts it. What is left of
   their deliveries must be what is left of those of desk-1, under the same ids, and what subscriber A found in the day's file.

The log stores blocks as they arrive, topic by topic. The desks' rules are in the order of the times (live.fl).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

import fairlead

HERE = Path(__file__).resolve().parent
TOPICS = "TOPIC orders (Order, Acknowledge, Cancel) TOPIC trades (Trade)\n"
TOGETHER = 500
"""Events that are stored before the next ones are sent: some 80 seconds of the day, less than the rules wait."""
LATE_BY = timedelta(minutes=22)
CLOSING = timedelta(hours=1)
"""A heartbeat of this much after the last event says that none comes before: everything is released, and final."""
WAIT_SECONDS = 120
AGREEING = ("equal", "agree")
"""desk-3 was not there from the beginning: what both delivered is the same."""
ALERT = ("account", "symbol", "shown", "traded")

Delivery = dict[str, Any]


@dataclass(frozen=True)
class Desk:
    name: str
    told: str
    process: subprocess.Popen[str]
    out: Path

    def ends(self) -> dict[str, Any]:
        """Let it read to the end of what is stored, and return what it was delivered."""
        self.process.communicate(timeout=WAIT_SECONDS)
        if self.process.returncode:
            raise SystemExit(f"{self.name} failed; its message stands above")
        found: dict[str, Any] = json.loads(self.out.read_text(encoding="utf-8"))
        return found


def start(url: str, name: str, begin: str, told: str, folder: Path) -> Desk:
    """Returns when it is subscribed."""
    out = folder / f"{name}-{begin}-{time.monotonic_ns()}.json"
    command = [sys.executable, str(HERE / "desk.py"), url, name, begin, "--out", str(out)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        process.wait(WAIT_SECONDS)
        raise SystemExit(f"{name} did not start; its message stands above")
    return Desk(name, told, process, out)


# --- the day, as it is published


@dataclass(frozen=True)
class LateEvent:
    """`at`: its place in the day. `after`: that of the event before which it is published."""

    at: int
    after: int
    values: dict[str, Any]

    def order(self, count: int) -> list[int]:
        """The places in the order of publishing."""
        places = [*range(self.at), *range(self.at + 1, count)]
        places.insert(self.after - 1, self.at)
        return places

    def is_in(self, delivery: Delivery) -> bool:
        return any(
            each["type"] == self.values["type"] and each.get("order_id") == self.values["order_id"]
            for each in delivery["events"]
        )


def late_event(day: pa.Table, planted: list[dict[str, Any]]) -> LateEvent:
    """The cancel of the first planted spoofing that has more layers than one: without it, another layer is found."""
    spoofs = [each for each in planted if each["kind"] == "Spoofing" and not each["near_miss"] and "layers" in each["note"]]
    if not spoofs:
        raise SystemExit("too few events: a planted spoofing with layers must be among them (try --events-limit 23000)")
    at = spoofs[0]["positions"][0]
    values = {name: value for name, value in day.slice(at, 1).to_pylist()[0].items() if value is not None}
    until = pa.scalar(values["at"] + LATE_BY, day.schema.field("at").type)
    return LateEvent(at, at + 1 + pc.sum(pc.less(day["at"].slice(at + 1), until)).as_py(), values)


def publish(fl: Any, day: pa.Table) -> None:
    """Portion after portion, each stored before the next is sent."""
    for low in range(0, day.num_rows, TOGETHER):
        fl.publish_all(day.slice(low, TOGETHER), wait=True)


# --- the deliveries


def folded(deliveries: Iterable[Delivery]) -> dict[str, Delivery]:
    """What is left, by id, when those that were taken back are gone."""
    left: dict[str, Delivery] = {}
    for each in deliveries:
        if each["sign"] > 0:
            left[each["id"]] = each
        else:
            del left[each["id"]]
    return left


def words_of(deliveries: Iterable[Delivery]) -> list[tuple[str, int, str]]:
    """The rule, the sign and the id of each, in the order of delivery."""
    return [(each["subscription"], each["sign"], each["id"]) for each in deliveries]


def later(all_of_them: list[tuple[str, int, str]], some: list[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """As many of each rule, the last ones, in their order: each rule begins with a state of its own."""
    left, found = Counter(each[0] for each in some), list[tuple[str, int, str]]()
    for each in reversed(all_of_them):
        if left[each[0]]:
            left[each[0]] -= 1
            found.insert(0, each)
    return found


def alerts(deliveries: Iterable[Delivery]) -> list[tuple[Any, ...]]:
    """What spoofing was found: the values that files and desks have in common."""
    return sorted(tuple(each["emitted"][name] for name in ALERT) for each in deliveries if each["subscription"] == "Spoofing")


def caused_by(late: LateEvent, deliveries: list[Delivery]) -> list[int]:
    """The places of the deliveries that have the late event as a member, or one that was derived from it."""
    found, derived = list[int](), list[dict[str, Any]]()
    for at, each in enumerate(deliveries):
        if each["sign"] > 0 and (late.is_in(each) or any(event in derived for event in each["events"])):
            found.append(at)
            derived.append({"type": "SpoofingAlert"} | each["emitted"])
    return found


# --- what is shown


def show(console: Console, day: pa.Table, planted: list[dict[str, Any]], of_the_file: list[Delivery], folder: Path) -> bool:
    """Everything above; whether all of them agree. `of_the_file`: what subscriber A found."""
    text = (HERE / "rules.fl").read_text(encoding="utf-8")
    rules = (HERE / "live.fl").read_text(encoding="utf-8")
    types = TOPICS + text[: text.index("-- A large order")]
    plan, late = fairlead.compile(types + rules), late_event(day, planted)
    published, cut = day.take(late.order(day.num_rows)), day.num_rows * 3 // 4
    console.rule("[bold]Live: the same day over a log[/bold]")
    with console.status("publishing"), fairlead.connect().sync as fl:
        fl.declare(types)
        first = start(fl.url, "desk-1", "earliest", "from the first event on", folder)
        second = start(fl.url, "desk-2", "earliest", "from the first event on", folder)
        began = time.perf_counter()
        publish(fl, published.slice(0, cut))
        seconds = time.perf_counter() - began
        home = second.ends()
        again = start(fl.url, "desk-2", "earliest", "went home after 3/4 of the day, came back", folder)
        joined = start(fl.url, "desk-3", "snapshot", "joined after 3/4 of the day, from a state", folder)
        began = time.perf_counter()
        publish(fl, published.slice(cut))
        fl.publish("Heartbeat", {"at": pc.max(day["at"]).as_py() + CLOSING}, wait=True)
        seconds += time.perf_counter() - began
        found = {each.name: (each, each.ends()) for each in (first, again, joined)}
        console.print(
            f"{day.num_rows:,} events published in two topics in {seconds:.1f} s, {day.num_rows / seconds:,.0f}/s; "
            "three desks follow the log\nwith THEN rules in the order of the times: "
            f"{next(line for line in rules.splitlines() if line.startswith('ORDER BY'))}\n"
        )
        one = found["desk-1"][1]["deliveries"]
        revised = _revision(console, late, one)
        console.print(_table(found), "")
        compared = {other: fl.compare("desk-1", other) for other in ("desk-2", "desk-3")}
        two = words_of([each for part in (home, found["desk-2"][1]) for each in part["deliveries"]])
        three = words_of(found["desk-3"][1]["deliveries"])
        whole = two == words_of(one) and three == later(words_of(one), three) and 0 < len(three) < len(one)
        for other, each in compared.items():
            console.print(Text(f"desk-1 and {other}  {each}", style=_colour(each.outcome in AGREEING)), soft_wrap=True)
        fl.export(rules, folder / "exported.parquet")
    left = folded(one)
    console.print(f"desk-1 has {len(one)} deliveries; without those that were taken back, {len(left)} are left:")
    same = alerts(left.values()) == alerts(of_the_file)
    _agree(console, f"subscriber A, over the day's file ({len(alerts(of_the_file))} Spoofing)", "the same alerts", same)
    (folder / "rules.fl").write_text(types + rules, encoding="utf-8")
    by_file = _file(folder / "rules.fl", folder / "exported.parquet")
    embedded = folded(by_file).keys() == left.keys()
    taken = sum(each["sign"] < 0 for each in by_file)
    exported = pq.read_table(folder / "exported.parquet", columns=["type"]).column("type")
    events = pc.sum(pc.not_equal(exported, "Heartbeat")).as_py()  # how many heartbeats are stored depends on the machine
    told = f"fairlead run, over the exported log ({events:,} events, {taken} relations taken back)"
    _agree(console, told, "the same relations, under the same ids", embedded)
    spark = _spark(console, plan, folder / "exported.parquet", left)
    return (
        whole
        and revised
        and same
        and embedded
        and spark
        and compared["desk-2"].equal
        and compared["desk-3"].outcome in AGREEING
    )


def _revision(console: Console, late: LateEvent, deliveries: list[Delivery]) -> bool:
    """The deliveries that the late event changed, before and after; whether it did."""
    taken = [at for at, each in enumerate(deliveries) if each["sign"] < 0]
    gone = {deliveries[at]["id"] for at in taken}
    before = [at for at, each in enumerate(deliveries) if each["sign"] > 0 and each["id"] in gone]
    added = caused_by(late, deliveries)
    values = late.values
    made = Table(title="One late event", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in ("delivery", "", "subscription", "emitted"):
        made.add_column(name, justify="right" if name == "delivery" else "left", header_style="dim")
    for at in before:
        made.add_row(*_row(at, deliveries[at]))
    minutes = int(LATE_BY.total_seconds() // 60)
    named = f"order_id={values['order_id']}, account={values['account']}, symbol={values['symbol']}, at={_short(values['at'])}"
    told = Text(f"{values['type']} {named}, {minutes} minutes late", style="yellow")
    made.add_row("", "", Text("late", style="yellow"), told)
    for at in sorted((*taken, *added)):
        made.add_row(*_row(at, deliveries[at]))
    console.print(made, "")
    return bool(taken) and bool(added) and max(before) < min(taken)


def _row(at: int, delivery: Delivery) -> tuple[str, Text, str, str]:
    sign = Text("+", style="green") if delivery["sign"] > 0 else Text("-", style="red")
    return (
        str(at + 1),
        sign,
        delivery["subscription"],
        ", ".join(f"{name}={_short(value)}" for name, value in delivery["emitted"].items()),
    )


def _short(value: Any) -> str:
    """Times without the day."""
    with suppress(TypeError, ValueError):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return f"{value:%H:%M:%S.%f}"[:-3]
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(found: dict[str, tuple[Desk, dict[str, Any]]]) -> Table:
    made = Table(title="Desks", title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("desk", "present", "delivered at last", "deliveries", "receipt"):
        made.add_column(name, justify="right" if "deliver" in name else "left")
    for name, (desk, its) in found.items():
        receipt = its["receipt"]
        made.add_row(name, desk.told, f"{len(its['deliveries']):,}", f"{receipt['count']:,}", receipt["digest"])
    return made


def _file(rules: Path, events: Path) -> list[Delivery]:
    """The deliveries of `fairlead run`, which reads the file as it is, in the order of the log."""
    out = events.with_name("deliveries.jsonl")
    command = [
        sys.executable,
        "-c",
        "from fairlead.cli.main import main; main()",
        "run",
        rules,
        "--events",
        events,
        "--out",
        out,
    ]
    subprocess.run([*map(str, command), "--quiet"], check=True)
    return [{"sign": 1} | json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def _spark(console: Console, plan: fairlead.Plan, path: Path, left: dict[str, Delivery]) -> bool:
    """Whether Spark finds the same; also where it could not be asked, which is said."""
    try:
        from fairlead import spark as fls

        with console.status("starting Spark"):
            session = fls.session()
    except (ImportError, fairlead.FairleadError) as error:
        console.print(f"Spark left out: {str(error).splitlines()[0]}; pip install 'fairlead[spark,java]'", soft_wrap=True)
        return True
    try:
        with console.status("Spark"):
            events = session.read.parquet(str(path))
            found = fls.match(plan, events, source="_source", sequence="_sequence")
            rows = found.where("verdict = 'in order'").collect()
    finally:
        session.stop()
    same = sorted(each.relation_id for each in rows) == sorted(left)
    _agree(console, "a Spark job over the exported log, which is sorted there", "the same relations, under the same ids", same)
    return same


def _agree(console: Console, who: str, what: str, same: bool) -> None:
    console.print(Text(f"  {who}  {what if same else 'not what desk-1 has'}", style=_colour(same)), soft_wrap=True)


def _colour(fine: bool) -> str:
    return "green" if fine else "red"
