"""Trade surveillance on a day of 136,000 events, by subscribers that have never met. `make run` starts this.

    python examples/surveillance/run.py [--events-limit N]

1. Two subscribers, each a process of its own, read the same day: one from Parquet in large batches, the other from JSON Lines
   in tiny ones. A third reads the day with two events swapped.
2. What they found is held against what was planted in the day (planted.json).
3. Their receipts are compared: the first two must agree, and the third must not.
4. The day is published to a log, one event of it late, and followed live by three desks, which revise what they delivered. A
   process and Spark over the exported log find the same (live.py).

The exit code is 0 only if every planted episode was found, nothing else was, and all that must agree does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Table
from rich.text import Text

import fairlead

HERE = Path(__file__).resolve().parent
VERDICTS = {"kept": ("kept", "green"), "kept per key": ("per key", "yellow"), "lost": ("lost", "red")}
TELLING = {"Spoofing": "shown", "WashTrade": "volume", "RepeatOffender": "shown"}
"""For three subscriptions, the emitted value that tells how bad a relation is."""

Relation = dict[str, Any]


@dataclass(frozen=True)
class Subscriber:
    name: str
    reads: str
    file: Path
    batch_rows: int
    hash_seed: int
    """Each process hashes text differently, so nothing can hang on the order of a set or a dict of one process."""


@dataclass(frozen=True)
class Delivered:
    events: int
    seconds: float
    receipt: fairlead.Receipt
    relations: list[Relation]


# --- the day


def read_day(limit: int | None) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The events, and the planted episodes that can be known by their end."""
    day = pq.read_table(HERE / "market.parquet")
    day = day.slice(0, limit) if limit else day
    episodes = json.loads((HERE / "planted.json").read_text(encoding="utf-8"))["episodes"]
    return day, [each for each in episodes if each["decided_at"] < day.num_rows]


def write_json_lines(day: pa.Table, path: Path) -> None:
    """One object per line, with the attributes of its type only; times as ISO 8601 text."""
    day = day.set_column(day.schema.get_field_index("at"), "at", pc.strftime(day["at"], "%Y-%m-%dT%H:%M:%SZ"))
    with path.open("w", encoding="utf-8") as out:
        for batch in day.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                out.write(json.dumps({name: value for name, value in row.items() if value is not None}) + "\n")


def swapped_pair(planted: list[dict[str, Any]]) -> tuple[int, int]:
    """Two events whose order matters: the trade and the cancel of a spoofing in the middle of what there is."""
    spoofs = [each for each in planted if each["kind"] == "Spoofing" and not each["near_miss"]]
    if not spoofs:
        raise SystemExit("too few events: the first planted spoofing must be among them (try --events-limit 20000)")
    cancel, _, trade = spoofs[len(spoofs) // 2]["positions"]
    return trade, cancel


def write_swapped(day: pa.Table, pair: tuple[int, int], path: Path) -> None:
    order = list(range(day.num_rows))
    order[pair[0]], order[pair[1]] = pair[1], pair[0]
    pq.write_table(day.take(order), path)


# --- the subscribers


def start(subscriber: Subscriber, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, HERE / "subscriber.py", subscriber.file, "--batch-rows", subscriber.batch_rows, "--out", out]
    environment = os.environ | {"PYTHONHASHSEED": str(subscriber.hash_seed)}
    return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True, env=environment)


def follow(process: subprocess.Popen[str], tell: Callable[[int], None]) -> None:
    for line in process.stdout or ():
        tell(int(line))


class Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} events/s" if speed else "", style="cyan")


def run_all(subscribers: Iterable[Subscriber], total: int, folder: Path, console: Console) -> list[Delivered]:
    """All at once, each with its progress bar; one line each where there is no terminal to draw bars on."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} events"),
        Rate(),
        console=console,
        disable=not console.is_terminal,
    )
    processes: list[subprocess.Popen[str]] = []
    followers: list[Thread] = []
    try:
        with bar:
            for at, each in enumerate(subscribers):
                task = bar.add_task(f"{each.name}  {each.reads}", total=total)
                processes.append(start(each, folder / f"{at}.json"))
                tell = lambda seen, task=task: bar.update(task, completed=seen)  # noqa: E731
                followers.append(Thread(target=follow, args=(processes[-1], tell)))
                followers[-1].start()
            for follower in followers:
                follower.join()
        if any(process.wait() for process in processes):
            raise SystemExit("a subscriber failed; its message stands above")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [read_delivered(folder / f"{at}.json") for at in range(len(processes))]


def read_delivered(path: Path) -> Delivered:
    content = json.loads(path.read_text(encoding="utf-8"))
    receipt = fairlead.Receipt.from_json(content["receipt"])
    ids = bytes.fromhex("".join(relation["id"] for relation in content["relations"]))
    return Delivered(content["events"], content["seconds"], replace(receipt, ids=ids), content["relations"])


# --- what they show


def table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    made = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for each in columns:
        made.add_column(each, justify="right" if each in right else "left", overflow="fold")
    return made


def found_table(plan: fairlead.Plan, relations: list[Relation], planted: list[dict[str, Any]]) -> tuple[Table, bool]:
    """What was found against what was planted, and whether they are the same."""
    columns = ("relations", "planted", "of them found", "near misses", "of them reported", "others")
    made = table("Found", "subscription", *columns, right=columns)
    exact = True
    for subscription in plan.subscriptions:
        found = {tuple(each["positions"]) for each in relations if each["subscription"] == subscription.name}
        mine = [each for each in planted if each["kind"] == subscription.name]
        real, near = ({tuple(each["positions"]) for each in mine if each["near_miss"] is wanted} for wanted in (False, True))
        counts = (found, real, real & found, near, near & found, found - real - near)
        exact = exact and found == real
        made.add_row(subscription.name, *(f"{len(each):,}" for each in counts))
    return made, exact


def shown(relation: Relation) -> Text:
    values = ", ".join(f"{name}={_short(value)}" for name, value in relation["emitted"].items())
    line = Text(f"{relation['subscription']:<15}", style="bold")
    return line.append(f"at {relation['completed_at']}  {values}", style="not bold")


def _short(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def guarantee_table(plan: fairlead.Plan) -> Table:
    names = [each.name for each in plan.subscriptions]
    made = table("What the order guarantees", "property", *names)
    verdicts = {name: {each.property: each.verdict for each in plan.guarantees[name]} for name in names}
    for each in fairlead.Property:
        cells = [VERDICTS[str(verdicts[name][each])] for name in names]
        made.add_row(str(each), *(Text(word, style=style) for word, style in cells))
    return made


def receipt_table(subscribers: list[Subscriber], delivered: list[Delivered]) -> Table:
    made = table("Receipts", "subscriber", "reads", "batch", "events/s", "deliveries", "receipt", right=("batch", "events/s"))
    for each, its in zip(subscribers, delivered, strict=True):
        rate = f"{its.events / its.seconds:,.0f}"
        made.add_row(each.name, each.reads, f"{each.batch_rows:,}", rate, f"{its.receipt.count:,}", its.receipt.digest)
    return made


def first_difference(comparison: fairlead.Comparison, left: Delivered, right: Delivered) -> list[Relation | None]:
    """The first delivery on which two subscribers differ, as each of them had it."""
    by_id = {each["id"]: each for its in (left, right) for each in its.relations}
    return [by_id.get(each or "") for each in comparison.first or (None, None)]


def next_steps(near_miss: int) -> list[str]:
    """Three commands to continue with, as they work from where this one was started."""
    beside = Path(sys.executable).with_name("fairlead")
    fairlead_command = "fairlead" if shutil.which("fairlead") or not beside.exists() else os.path.relpath(beside)
    folder = os.path.relpath(HERE)
    rules = f"{folder}/rules.fl"
    return [
        f"{fairlead_command} why {rules} --events {folder}/market.parquet --at {near_miss}   # why a near miss is none",
        f"{fairlead_command} explain {rules}   # each guarantee with the clause that loses it",
        f"{fairlead_command} test {folder}/rules.test.yaml   # rule tests: change a rule, and see which case it breaks",
    ]


def live_part(console: Console, day: pa.Table, planted: list[dict[str, Any]], relations: list[Relation], folder: Path) -> bool:
    """live.py, where what it needs is installed."""
    try:
        import nats  # noqa: F401
    except ImportError:
        console.print("The live part is left out: pip install 'fairlead[live,spark]'")
        return True
    sys.path.insert(0, str(HERE))
    from live import show

    return show(console, day, planted, relations, folder)


def main(limit: int | None) -> int:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    began = time.perf_counter()
    plan = fairlead.compile((HERE / "rules.fl").read_text(encoding="utf-8"), "rules.fl")
    day, planted = read_day(limit)
    pair = swapped_pair(planted)
    near_miss = next(each["decided_at"] for each in planted if each["near_miss"] and each["kind"] == "Spoofing")
    first, last = (pc.strftime(day["at"][at], "%H:%M").as_py() for at in (0, -1))
    console.rule("[bold]Fairlead: trade surveillance[/bold]")
    console.print(
        f"{day.num_rows:,} events from {first} to {last}, {pc.count_distinct(day['symbol'])} symbols, "
        f"{pc.count_distinct(day['account'])} accounts; {len(plan.subscriptions)} subscriptions in rules.fl; "
        "three subscribers, each a process of its own.\n"
    )
    with tempfile.TemporaryDirectory(prefix="fairlead-run-") as name:
        folder = Path(name)
        subscribers = [
            Subscriber("A", "Parquet", folder / "day.parquet", 16_384, 1),
            Subscriber("B", "JSON Lines", folder / "day.jsonl", 61, 2),
            Subscriber("C", "Parquet, 2 events swapped", folder / "swapped.parquet", 4_096, 3),
        ]
        with console.status("writing the day as JSON Lines"):
            pq.write_table(day, subscribers[0].file)
            write_json_lines(day, subscribers[1].file)
            write_swapped(day, pair, subscribers[2].file)
        delivered = run_all(subscribers, day.num_rows, folder, console)
    a, b, c = delivered

    made, exact = found_table(plan, a.relations, planted)
    console.print(made, "")
    console.print("[bold]Worst of each kind[/bold] (place in the order, then what the rule emits)")
    for subscription, measure in TELLING.items():
        mine = [each for each in a.relations if each["subscription"] == subscription]
        if mine:
            console.print(shown(max(mine, key=lambda each: each["emitted"][measure])), soft_wrap=True)
    console.print("", guarantee_table(plan))
    console.print(
        "kept: always; per key: within one key of PER; lost: `fairlead explain` names the clause and says why\n", style="dim"
    )
    console.print(receipt_table(subscribers, delivered), "")
    agree, differ = fairlead.compare(a.receipt, b.receipt), fairlead.compare(a.receipt, c.receipt)
    console.print(Text(f"A and B  {agree}", style="green" if agree else "red"))
    console.print(Text(f"A and C  {differ}", style="red"))
    seen = " and ".join(f"{day['type'][at]} {at}" for at in pair)
    console.print(f"         C read {seen} in the other order:")
    for who, relation in zip("AC", first_difference(differ, a, c), strict=True):
        console.print(
            Text(f"         {who} delivered ").append(shown(relation) if relation else Text("nothing")), soft_wrap=True
        )
    console.print()
    with tempfile.TemporaryDirectory(prefix="fairlead-run-") as name:
        live_agrees = live_part(console, day, planted, a.relations, Path(name))
    good = exact and agree.equal and not differ.equal and live_agrees
    console.print(f"\nDone in {time.perf_counter() - began:.0f} s. Next:")
    for command in next_steps(near_miss):
        console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)
    return 0 if good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Trade surveillance by subscribers that have never met.")
    parser.add_argument("--events-limit", type=int, help="read only the first N events of the day")
    raise SystemExit(main(parser.parse_args().events_limit))
