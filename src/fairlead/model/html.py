"""Plain HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from fairlead.model.plans.retention import retain_words

if TYPE_CHECKING:
    from fairlead.model.guarantee import Guarantee
from fairlead.model.plans.plan import Plan


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    cells = "".join(f"<th style='text-align:left'>{escape(each)}</th>" for each in head)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def guarantees_html(guarantees: Iterable[Guarantee]) -> str:
    return table(("property", "verdict", "clause", "why"), [(g.property, g.verdict, g.clause, g.reason) for g in guarantees])


def plan_html(plan: Plan) -> str:
    rows = [
        (
            each.name,
            " OR ".join("[" + ", ".join(signature) + "]" for signature in each.signatures()),
            ", ".join(each.per) or "–",
            "–" if each.within_us is None else f"{each.within_us / 1_000_000:g} s",
            each.matching.words + ("" if each.limit_per_event is None else f", LIMIT {each.limit_per_event} PER EVENT"),
            each.disposal_words
            + (f", KEEP {', '.join(each.kept_aliases)}" if each.kept_aliases else "")
            + (f", FOLD {', '.join(each.folded_aliases)}" if each.has_folds else "")
            + "".join(f", RETAIN {said}" for said in retain_words(each))
            + ("" if each.limit is None else f", {each.limit}"),
            each.emits or "–",
            f"{sum(g.kept for g in plan.guarantees.get(each.name, ()))} of {len(plan.guarantees.get(each.name, ()))}",
        )
        for each in plan.subscriptions
    ]
    head = ("subscription", "signature", "per", "within", "matching", "disposal", "emits", "guarantees kept")
    return table(head, rows)
