"""The result of a run, for people and as JSON.

Takes: a finished run. Gives: `Summary`. Never: holds more relations than it shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from fairlead.cli.display.screen import counted, shown_positions, table
from fairlead.dataclass import dataclass
from fairlead.deliver.receipt import Receipt
from fairlead.matching.state.encoding import Change
from fairlead.model.events.verdict import EventVerdict, RevisionVerdict
from fairlead.model.lint_warning import LintWarning
from fairlead.model.plans.plan import Plan, Subscription
from fairlead.model.relations.relation import PLUS, Relation
from fairlead.runtime.embedded import Run

if TYPE_CHECKING:
    from rich.console import Console

    from fairlead.cli.commands.run import RunArguments


WAITING = "relations wait for a deadline that no event it reads has passed; --until TIME decides them"
BEGUN = "a sequence has begun, and no event has decided it; --until 9999-12-31T23:59:59.999999Z says that nothing follows"


@dataclass(frozen=True)
class Summary:
    job: RunArguments
    plan: Plan
    events: int
    duplicates: int
    rejected: int
    found: Counter[str]
    first: tuple[Relation, ...]
    waiting: tuple[str, ...]
    """Subscriptions with relations whose deadline has not passed."""
    receipt: Receipt
    seconds: float
    change: Change
    receipts: Mapping[str, Receipt]
    """By subscription, over all runs with the same state; none without --state."""
    late: int | None = None
    """Events that arrived after the frontier had passed them; None if the order is not by value with a delay."""
    verdicts: Mapping[EventVerdict, int] = field(default_factory=dict)
    """Events that took no part, in this run, if the order is by value with a delay."""
    revisions: Mapping[RevisionVerdict, int] | None = None
    """Relations that late events added or took back, in this run; None if the rules do not say LATE REVISE."""
    unstored: int = 0
    """Events that do not tell when they were stored, where the rules say AHEAD."""
    backwards: int = 0
    """Events whose time is before that of an earlier one, where the order of the records counts."""

    @classmethod
    def of(cls, job: RunArguments, plan: Plan, run: Run, first: tuple[Relation, ...], rejected: int, seconds: float) -> Summary:
        waiting = tuple(run.waiting())
        receipts = {name: book.receipt() for name, book in run.books.items()}
        return cls(
            job,
            plan,
            run.events,
            run.duplicates,
            rejected,
            run.found,
            first,
            waiting,
            run.receipt,
            seconds,
            run.change,
            receipts,
            None if run.matcher is None else run.matcher.late,
            run.verdicts,
            None if plan.order is None or plan.order.revise_us is None else run.revisions,
            run.unstored,
        )

    @property
    def new_found(self) -> int:
        """Relations of this run."""
        return sum(self.found.values())

    @property
    def slow(self) -> list[LintWarning]:
        """Why the run was slower than it could be; other warnings are for `fairlead lint`."""
        return [each for each in self.plan.warnings if each.code == "W013"]

    def to_json(self) -> dict[str, Any]:
        return {
            "events": self.events,
            "duplicates": self.duplicates,
            "rejected": self.rejected,
            **({} if self.late is None else {"late": self.late}),
            **self._judged_json(),
            **({"times_backwards": self.backwards} if self.backwards else {}),
            "relations": {each.name: self.found[each.name] for each in self.plan.subscriptions},
            "waiting": list(self.waiting),
            "deliveries": self.receipt.count,
            "receipt": self.receipt.digest,
            "plan": self.plan.digest,
            "seconds": round(self.seconds, 3),
            "warnings": [str(each) for each in self.slow],
        } | self._state_json()

    def _judged_json(self) -> dict[str, Any]:
        """Only where the rules say AHEAD or LATE REVISE."""
        order, told = self.plan.order, dict[str, Any]()
        if order is not None and order.ahead_us is not None:
            told |= {"ahead": self.verdicts.get(EventVerdict.AHEAD, 0), "unstored": self.unstored}
        if self.revisions is not None:
            told["repeated"] = self.verdicts.get(EventVerdict.REPEATED, 0)
            told["revisions"] = {each.value: self.revisions.get(each, 0) for each in RevisionVerdict}
        return told

    def _state_json(self) -> dict[str, Any]:
        if self.job.state is None:
            return {}
        told = {name: {"deliveries": each.count, "receipt": each.digest} for name, each in self.receipts.items()}
        change = {what: list(names) for what, names in self.change.names().items()}
        return {"state": {"file": self.job.state, **change}, "receipts": told}

    def show(self, console: Console) -> None:
        console.print(self._headline())
        console.print()
        console.print(self._subscriptions())
        if self.first and self.job.out is None:
            console.print()
            console.print(self._relations())
        if any(not each.kept for verdicts in self.plan.guarantees.values() for each in verdicts):
            console.print()
            console.print(f"which properties are lost, where and why: fairlead explain {self.job.rules} --counterexample")
        for name in self.waiting:
            console.print(f"{name}: {WAITING if self.plan[name].waits else BEGUN}", soft_wrap=True)
        if self.backwards:
            told = f"times run backwards: {counted(self.backwards, 'event')} after a later one"
            console.print(f"{told}. To match by time, write ORDER BY TIME in the rules, or add --order-by", soft_wrap=True)
        if self.unstored:
            told = f"AHEAD: {counted(self.unstored, 'event')} without the time of storage (`_stored`), so none of them is ahead"
            console.print(told, soft_wrap=True)
        for warning in self.slow:
            console.print(f"warning {warning}", soft_wrap=True)
        if others := len(self.plan.warnings) - len(self.slow):
            console.print(f"{counted(others, 'warning')} about the rules: fairlead lint {self.job.rules}", soft_wrap=True)
        console.print()
        if self.job.state is not None:
            console.print(f"state in {self.job.state}; {self.change.summary()}", soft_wrap=True)
            for name, each in self.receipts.items() if len(self.receipts) > 1 else ():
                console.print(f"receipt  {each.digest}  after {counted(each.count, 'relation')} of {name}", soft_wrap=True)
        self._files(console)
        console.print(f"receipt  {self.receipt.digest}  after {counted(self.receipt.count, 'relation')}")

    def _headline(self) -> str:
        rate = f", {self.events / self.seconds:,.0f}/s" if self.seconds else ""
        dropped = f", {counted(self.duplicates, 'duplicate')} dropped" if self.duplicates else ""
        refused = f", {self.rejected:,} rejected" if self.rejected else ""
        relations, late = counted(self.new_found, "relation"), f", {self.late:,} late" if self.late else ""
        for verdict in (EventVerdict.AHEAD, EventVerdict.REPEATED):
            late += f", {self.verdicts[verdict]:,} {verdict}" if self.verdicts.get(verdict) else ""
        if self.revisions and any(self.revisions.values()):
            relations += f" ({', '.join(f'{self.revisions.get(each, 0):,} {each}' for each in RevisionVerdict)})"
        return f"{counted(self.events, 'event')}{dropped}{refused}{late}, {relations} in {self.seconds:.1f} s{rate}"

    def _subscriptions(self) -> Any:
        made = table(
            "subscription", "relations", "kept", "per key", "lost", "signature", right=("relations", "kept", "per key", "lost")
        )
        for each in self.plan.subscriptions:
            verdicts = Counter(guarantee.verdict for guarantee in self.plan.guarantees.get(each.name, ()))
            counts = (self.found[each.name], verdicts["kept"], verdicts["kept per key"], verdicts["lost"])  # type: ignore[index]
            made.add_row(each.name, *(f"{count:,}" for count in counts), signature(each))
        return made

    def _relations(self) -> Any:
        made = table("subscription", "at", "positions", "emitted", "id")
        for each in self.first:
            emitted = ", ".join(f"{name} = {value}" for name, value in each.to_json()["emitted"].items())
            sign = "" if each.sign == PLUS else "- "
            made.add_row(
                sign + each.subscription, str(each.completed_at), shown_positions(each.positions), emitted, each.id[:12]
            )
        if self.new_found > len(self.first):
            made.add_row("…", "", f"{self.new_found - len(self.first):,} more: --out FILE")
        return made

    def _files(self, console: Console) -> None:
        job = self.job
        rejects = job.rejects_path if self.rejected or job.rejects else None
        for name, path in (("relations", job.out), ("rejected", rejects), ("late", job.late), ("receipt", job.receipt)):
            if path not in (None, "-"):
                console.print(f"{name} in {path}", soft_wrap=True)


def signature(subscription: Subscription) -> str:
    """`[EarningsReport, StockQuote × 3]`, branches joined by OR."""
    branches = []
    for types in subscription.signatures():
        counts = Counter(types)
        branches.append("[" + ", ".join(name if n == 1 else f"{name} × {n}" for name, n in counts.items()) + "]")
    return " OR ".join(branches)
