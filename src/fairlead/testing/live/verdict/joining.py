"""Subscribers that join others in the middle of a run (start="new", "snapshot"): from there on each must receive what the
others receive, under the same numbers, over all its restarts.

Takes: the lines of the record of one that joined, and the deliveries of one that was there from the beginning. Gives: problems,
in words. Never: looks at the log: what the other received is compared with it (checks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead.testing.live.actors.records import Line
from fairlead.testing.live.verdict.deliveries import DeliveredNumbers, delivery_of


def last_acknowledged(lines: Iterable[Line]) -> dict[str, int]:
    """By group."""
    return {line["group"]: int(line["acked"]) for line in lines if "acked" in line}


def joined_problems(name: str, lines: Iterable[Line], whole: Mapping[str, DeliveredNumbers]) -> list[str]:
    """`whole`: by group, all deliveries."""
    problems: list[str] = []
    first, reached, acked, before = dict[str, int](), dict[str, int](), dict[str, int](), dict[str, int | None]()
    receipts: Mapping[str, Mapping[str, int]] = {}
    for line in lines:
        if "begun" in line:
            before = {}
        elif "receipts" in line:
            receipts = line["receipts"]
        elif "acked" in line:
            acked[line["group"]] = int(line["acked"])
        elif "number" in line:
            key, number = line["group"], int(line["number"])
            last = before.get(key)
            if last is not None and number != last + 1:
                problems.append(f"{name} is given number {number} after {last}")
            elif last is None and key in acked and not acked[key] < number <= reached[key] + 1:
                problems.append(f"{name} resumes with number {number}, and has acknowledged {acked[key]}")
            elif last is None and key not in acked and number > reached.get(key, number):
                problems.append(f"{name} resumes with number {number}, and was given {first[key]} to {reached[key]}")
            before[key] = number
            first.setdefault(key, number)
            reached[key] = max(number, reached.get(key, 0))
            there = whole[key].lines if key in whole else []
            known = delivery_of(there[number - 1]) if number <= len(there) else "nothing"
            if delivery_of(line) != known:
                problems.append(f"{name} is given {delivery_of(line)} as number {number}, and others {known}")
    for key, each in whole.items():
        counted = receipts.get(key, {}).get("count", 0)  # of the lineage: also if nothing came after it had joined
        if counted != len(each.lines) or reached.get(key, counted) != counted:
            problems.append(
                f"{name} has come to number {reached.get(key)}, counts {counted}, and others have {len(each.lines)}"
            )
    return problems
