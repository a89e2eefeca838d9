"""One desk that follows the log, in a process of its own: writes down what it is given, and acknowledges it.

    python desk.py nats://127.0.0.1:4222 desk-1 earliest --out desk-1.json

It prints `ready` when it is subscribed. When its standard input ends, it reads to the end of what is stored, and stops.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fairlead

RULES = Path(__file__).with_name("live.fl")
LOOK_SECONDS = 0.05


def follow(url: str, name: str, start: str) -> dict[str, Any]:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    deliveries: list[dict[str, Any]] = []
    with fairlead.connect(url).sync as fl, fl.subscribe(RULES.read_text(encoding="utf-8"), name=name, start=start) as sub:
        before = counted(sub.receipts.values())["count"]
        print("ready", flush=True)
        began, ends = time.perf_counter(), None
        while True:
            relation = sub.next(LOOK_SECONDS)
            if relation is not None:
                deliveries.append({"sign": relation.sign} | relation.to_json())
                continue
            if ends is not None and sub.has_passed(ends):
                break
            ends = sub.ends() if over.is_set() else None
        sub.ack()
        receipt, seconds = counted(sub.receipts.values()), time.perf_counter() - began
    return {"before": before, "deliveries": deliveries, "receipt": receipt, "seconds": seconds}


def counted(receipts: Iterable[fairlead.Receipt]) -> dict[str, Any]:
    """Each subscription has a receipt; what all of them come to, in the order of the text."""
    told = list(receipts)
    digest = hashlib.sha256(" ".join(each.digest for each in told).encode()).hexdigest()[:32]
    return {"count": sum(each.count for each in told), "digest": digest}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("name")
    parser.add_argument("start")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    found = follow(arguments.url, arguments.name, arguments.start)
    arguments.out.write_text(json.dumps(found), encoding="utf-8")
