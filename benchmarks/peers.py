"""Peers: other engines on the same stream, each installed into an environment of its own. `python -m benchmarks.peers`.

Takes: nothing but pip and, for two of them, Java. Gives: events a second and relations of whatever could be installed, and
why the rest could not. Never: installs into the environment that runs it; the environments lie in the cache folder
(workload.folder()).

Only bytewax, whose operators are written by hand, has Fairlead's meaning throughout. The others run the nearest thing they can
say; their files in peers/ tell what differs, and the number of relations shows it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import by_hand, workload
from benchmarks.measure import ROOT, load, machine, short, spawn

INSTALL_SECONDS = 900.0
SCRIPTS = ROOT / "benchmarks" / "peers"


@dataclass(frozen=True)
class Peer:
    """`queries`: each with what differs from Fairlead's meaning. `events` is what fits into a minute or two on two cores.
    `broken` are requirements that pip installs and that must go."""

    name: str
    package: str
    script: str
    queries: Mapping[str, str]
    events: int
    needs_java: bool = False
    broken: tuple[str, ...] = ()

    @property
    def place(self) -> Path:
        return workload.folder() / "peers" / self.package.lower().replace("-", "_").partition("=")[0]

    @property
    def python(self) -> str:
        return str(self.place / "bin" / "python")


BY_HAND = "operators by hand in Python, same meaning"
FEWER = "no row in two matches: fewer relations"
EVERY_ROW = "every row above the threshold, nothing is disposed of: more relations"
PEERS = (
    Peer(
        "bytewax",
        "bytewax==0.21.1",
        "bytewax_q.py",
        dict.fromkeys(("Q1", "Q2", "Q3", "Q3r", "Q7", "Q8", "Q9"), BY_HAND)
        | {"Q10": "a session ends with the next event of its key: fewer at the end"},
        1_000_000,
    ),
    Peer(
        "DuckDB",
        "duckdb==2.0.0",
        "duckdb_q.py",
        {
            "Q3r": "set SQL, same relations",
            "Q7": "a rise and the next fall share a row: more relations",
            "Q8": EVERY_ROW,
            "Q9": EVERY_ROW,
            "Q10": "set SQL, same relations",
            "Q11": "a join, nothing is disposed of: more relations",
        },
        1_000_000,
    ),
    Peer(
        "Flink MATCH_RECOGNIZE",
        "apache-flink==2.3.0",
        "flink_q.py",
        {
            "Q2": FEWER,
            "Q3": FEWER,
            "Q3r": "what the end of the stream leaves open is missing",
            "Q7": "what the end of the stream leaves open is missing",
            "Q9": "a fixed count instead of one that grows",
            "Q10": "a session ends with the next row of its key: fewer at the end",
        },
        100_000,
        needs_java=True,
    ),
    Peer(
        "Siddhi (PySiddhi)",
        "PySiddhi==5.1.0",
        "siddhi_q.py",
        dict.fromkeys(
            ("Q2", "Q3"), "every A begins a match, nothing is disposed of: more relations; events sent one by one from Python"
        ),
        20_000,
        needs_java=True,
        broken=("enum34",),  # shadows the enum of Python 3.11 in PySiddhi's processes
    ),
)


def install(peer: Peer) -> str | None:
    """Make the peer's environment unless it is there. Gives the reason if that is not possible."""
    done = peer.place / "installed"
    if peer.needs_java and not java_home():
        return "no Java found (set JAVA_HOME)"
    if done.exists() and done.read_text() == peer.package:
        return None
    shutil.rmtree(peer.place, ignore_errors=True)
    steps = [
        [sys.executable, "-m", "venv", str(peer.place)],
        [peer.python, "-m", "pip", "install", "--quiet", peer.package, "pyarrow"],
        *([peer.python, "-m", "pip", "uninstall", "--quiet", "--yes", each] for each in peer.broken),
    ]
    for step in steps:
        child = spawn(step, INSTALL_SECONDS)
        if child.code != 0:
            return f"`{' '.join(step[1:])}`: {child.json()['failed']}"
    _siddhi_home(peer)
    done.write_text(peer.package)
    return None


def java_home() -> str | None:
    if os.environ.get("JAVA_HOME"):
        return os.environ["JAVA_HOME"]
    java = shutil.which("java")
    return str(Path(java).resolve().parent.parent) if java else None


def _siddhi_home(peer: Peer) -> Path:
    """PySiddhi looks for its own jars in $SIDDHISDK_HOME/lib, where they are not."""
    home = peer.place / "sdk"
    for jar in (peer.place / "lib").glob("python*/site-packages/__PySiddhiProxy/target/**/*.jar"):
        (home / "lib").mkdir(parents=True, exist_ok=True)
        if not (home / "lib" / jar.name).exists():
            (home / "lib" / jar.name).symlink_to(jar)
    return home


def measure(peer: Peer, events: int, limit: float) -> list[dict[str, Any]]:
    reason = install(peer)
    if reason is not None:
        return [{"peer": peer.name, "failed": reason}]
    size = min(events, peer.events)
    source = workload.parquet(size)
    environment = {"JAVA_HOME": java_home() or "", "SIDDHISDK_HOME": str(peer.place / "sdk")}
    found = []
    for query, says in peer.queries.items():
        child = spawn([peer.python, str(SCRIPTS / peer.script), str(source), query], limit, environment)
        ours = by_hand.relations_in(by_hand.BY_HAND[query](workload.stream(size)))
        row = {"peer": peer.name, "query": query, "says": says, "fairlead_relations": ours, **child.json()}
        if "wall_s" in row:
            row |= {
                "events_per_s": row["events"] / row["wall_s"],
                "process_cpu_s": child.cpu_s,
                "process_peak_mb": child.peak_mb,
            }
        found.append(row)
        print(line(row), flush=True)
    return found


HEADER = "| peer | query | events | events/s | relations | Fairlead's | remark |\n|---|---|---|---|---|---|---|"


def line(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"| {row['peer']} | {row.get('query', '–')} | – | – | – | – | {row['failed']} |"
    return (
        f"| {row['peer']} | {row['query']} | {row['events']:,} | {short(row['events_per_s'])} | {row['relations']:,} "
        f"| {row['fairlead_relations']:,} | {row['says']} |"
    )


def everything(events: int, limit: float, names: Collection[str] = ()) -> list[dict[str, Any]]:
    """Of all peers, or of those whose package is named."""
    print(HEADER)
    found = []
    for peer in PEERS:
        if names and peer.package.partition("=")[0].lower() not in names:
            continue
        rows = measure(peer, events, limit)
        if "query" not in rows[0]:
            print(line(rows[0]), flush=True)
        found += rows
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Other engines on the same stream.")
    parser.add_argument("--events", type=int, default=workload.EVENTS, help="at most; each peer has a limit of its own")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for a peer and query")
    parser.add_argument("--peers", default="", help="packages, separated by commas: duckdb,bytewax (default: all)")
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    rows = everything(given.events, given.limit, [each for each in given.peers.lower().split(",") if each])
    if given.json:
        Path(given.json).write_text(json.dumps({"machine": machine(), "load": load(), "peers": rows}, indent=1))


if __name__ == "__main__":
    main()
