"""The same day, live: published to a log, followed by desks that come and go, and matched by Spark over the same log.

1. A server of our own keeps the log. Two desks subscribe, each a process of its own, and the day is published.
2. After three quarters of it desk-2 goes home. It comes back, and desk-3 joins from the state that desk-2 has saved; then
   the rest is published.
3. Receipts are compared over the wire.
4. Spark reads the log too, and `fairlead.match` reads a file that is exported from it: both must find the relations of
   desk-1, under the same ids.

Between types, the log has an order of its own: that in which blocks arrived. It is near that of the file, and not the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from rich.text import Text

import fairlead

HERE = Path(__file__).resolve().parent
TOGETHER = 1_000
"""Events that are published before the next ones: of each type, a block."""
WAIT_SECONDS = 120
ORDER = ("Order", "Acknowledge", "Trade", "Cancel")
"""Of the types in a portion: as they mostly follow one another."""


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


def publish(fl: Any, day: pa.Table, columns: dict[str, list[str]]) -> None:
    """Portion after portion, each stored before the next is sent."""
    for low in range(0, day.num_rows, TOGETHER):
        part = day.slice(low, TOGETHER)
        for name in ORDER:
            mine = part.filter(pc.equal(part["type"], name))
            if mine.num_rows:
                fl.publish_many(name, mine.select(columns[name]))
        fl.flush()


def show(console: Console, day: pa.Table, folder: Path) -> bool:
    """Everything above; whether all of them agree."""
    text = (HERE / "rules.fl").read_text(encoding="utf-8")
    rules = (HERE / "live.fl").read_text(encoding="utf-8")
    types = text[: text.index("-- A large order")]
    plan = fairlead.compile(types + rules)
    columns = {each.name: [attribute.name for attribute in each.attributes] for each in plan.catalogue if not each.derived}
    console.rule("[bold]Live: the same day over a log[/bold]")
    with console.status("publishing"), fairlead.connect().sync as fl:
        fl.declare(types)
        first = start(fl.url, "desk-1", "earliest", "from the first event on", folder)
        second = start(fl.url, "desk-2", "earliest", "from the first event on", folder)
        began, cut = time.perf_counter(), day.num_rows * 3 // 4
        publish(fl, day.slice(0, cut), columns)
        seconds = time.perf_counter() - began
        home = second.ends()
        again = start(fl.url, "desk-2", "earliest", "went home after 3/4 of the day, came back", folder)
        late = start(fl.url, "desk-3", "snapshot", "joined after 3/4 of the day, from a state", folder)
        began = time.perf_counter()
        publish(fl, day.slice(cut), columns)
        seconds += time.perf_counter() - began
        found = {each.name: (each, each.ends()) for each in (first, again, late)}
        console.print(
            f"{day.num_rows:,} events of {len(columns)} types published in {seconds:.1f} s, "
            f"{day.num_rows / seconds:,.0f}/s; three desks follow the log with the rules of live.fl.\n"
        )
        console.print(_table(found), "")
        compared = {other: fl.compare("desk-1", other) for other in ("desk-2", "desk-3")}
        one = ids_of(found["desk-1"][1]["relations"])
        two = ids_of([each for part in (home, found["desk-2"][1]) for each in part["relations"]])
        three = ids_of(found["desk-3"][1]["relations"])
        whole = two == one and three == later(one, three) and 0 < len(three) < len(one)
        for other, each in compared.items():
            console.print(Text(f"desk-1 and {other}  {each}", style="green" if each else "red"))
        exported = fl.export(rules, folder / "exported.parquet")
        again_found = fairlead.match(plan, pq.read_table(folder / "exported.parquet"), position="position")
        embedded = ids_of([each.to_json() for each in again_found]) == one
        said = "the same relations as desk-1, under the same ids, in the same order" if embedded else "not what desk-1 has"
        console.print(Text(f"one process over an exported file ({exported.events:,} events)  {said}", style=_colour(embedded)))
        spark = _spark(console, plan, fl.url, [each for _, each in one])
    return whole and embedded and spark and all(compared.values()) and len(one) > 0


def ids_of(relations: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The rule and the id of each, in the order of delivery."""
    return [(each["subscription"], each["id"]) for each in relations]


def later(all_of_them: list[tuple[str, str]], some: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """As many of each rule, the last ones, in their order: each rule begins with a state of its own."""
    left, found = Counter(rule for rule, _ in some), list[tuple[str, str]]()
    for each in reversed(all_of_them):
        if left[each[0]]:
            left[each[0]] -= 1
            found.insert(0, each)
    return found


def _table(found: dict[str, tuple[Desk, dict[str, Any]]]) -> Table:
    from rich.box import SIMPLE_HEAD

    made = Table(title="Desks", title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("desk", "present", "delivered at last", "deliveries", "receipt"):
        made.add_column(name, justify="right" if "deliver" in name else "left")
    for name, (desk, its) in found.items():
        receipt = its["receipt"]
        made.add_row(name, desk.told, f"{len(its['relations']):,}", f"{receipt['count']:,}", receipt["digest"])
    return made


def _spark(console: Console, plan: fairlead.Plan, url: str, ids: list[str]) -> bool:
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
            events = fls.log(session, url, plan=plan)
            rows = fls.match(plan, events, position="position").where("verdict = 'in order'").collect()
    finally:
        session.stop()
    same = sorted(each.relation_id for each in rows) == sorted(ids)
    said = "the same relations as desk-1, under the same ids" if same else "not what desk-1 has"
    console.print(Text(f"a Spark job over the same log  {said}", style=_colour(same)))
    return same


def _colour(fine: bool) -> str:
    return "green" if fine else "red"
