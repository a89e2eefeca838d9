"""Random rules in which a table, a bound or a timer meets what could be lost by it: two keys whose events replace one another
between arrivals, conditions that they pass at some times only, several tables, late times, extensions and siblings.

Takes: a seed and what to draw. Gives: the text of three subscriptions that extend one prefix and an observer, and a stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fairlead.model.plans.options import PAPER_DISPOSALS, PAPER_MATCHINGS

NAMES = "ABCD"
TYPES = "\n".join(f"TYPE {name} (k INT, x INT, at TIMESTAMP) TIME at" for name in f"{NAMES}EF")
KINDS = ("TABLE", "RETAIN", "AFTER")


@dataclass(frozen=True)
class AimedWorld:
    text: str
    records: list[dict[str, int | str]]
    publishers: list[str]


@dataclass(frozen=True)
class _Part:
    """One type of the pattern."""

    name: str
    count: int
    table: bool

    @property
    def element(self) -> str:
        return f"{self.name}{'T' * self.table} {self.name.lower()}" + (f"[{self.count}]" if self.count > 1 else "")

    @property
    def names(self) -> list[str]:
        alias = self.name.lower()
        return [alias] if self.count == 1 else [f"{alias}[{at}]" for at in range(1, self.count + 1)]


def aimed_world(kind: str, seed: int) -> AimedWorld:
    chance = Random(f"{kind}/{seed}")
    size = chance.choice((2, 2, 3, 3, 4)) if kind == "TABLE" else chance.choice((1, 1, 2, 2, 3))
    names = sorted(chance.sample(NAMES, size))
    tables = set(chance.sample(names, chance.randint(1, max(1, size - 2)))) if kind == "TABLE" else set[str]()
    parts = [_Part(name, 1 if name in tables else chance.choice((1, 1, 2)), name in tables) for name in names]
    cut = chance.randint(1, size)
    ends = _ends(kind, parts, cut, chance)
    options = f"MATCHING {chance.choice(PAPER_MATCHINGS).words}\nDISPOSAL {chance.choice(PAPER_DISPOSALS).words}"
    conditions = _conditions(parts, chance)
    further = [[], [_Part("E", 1, False)], [_Part("F", chance.choice((1, 1, 2)), False)]]
    texts = [_text(parts if at < 2 else parts[:cut], each, conditions, ends, options) for at, each in enumerate(further)]
    texts.append(f"MATCH {chance.choice(names)} o\n{options}")
    made = "\n".join(f"SUBSCRIPTION p{at}\n{text}" for at, text in enumerate(texts, 1))
    declared = "\n".join(f"TABLE {name}T KEY (k) FROM {name}" for name in sorted(tables))
    records = _stream(names, tables, chance)
    publishers = [chance.choice(("p4", "p4", "p5")) for _ in records]
    return AimedWorld(f"{TYPES}\n{declared}\n{made}\n", records, publishers)


def _ends(kind: str, parts: list[_Part], cut: int, chance: Random) -> list[tuple[str, str]]:
    """Clauses, each with the alias that it names."""
    if kind == "AFTER":
        anchors = chance.sample([each.names[-1] for each in parts[:cut]], 1)
        return [(each, f"AFTER 3 SECONDS OF {each}") for each in anchors]
    if kind == "RETAIN":
        bounded = chance.sample(parts, chance.randint(1, len(parts)))
        return [(each.names[0], f"RETAIN {each.name.lower()} {_bound(each, chance)}") for each in bounded]
    return []


def _bound(part: _Part, chance: Random) -> str:
    amount = f"{part.count + chance.randint(0, 1)} EVENTS" if chance.random() < 0.5 else f"{chance.choice((2, 5))} SECONDS"
    return amount + (" BATCH" if chance.random() < 0.5 else "")


def _conditions(parts: list[_Part], chance: Random) -> list[str]:
    names = [name for each in parts for name in each.names]
    unary = [f"{name}.x {chance.choice(('=', '!=', '>'))} {chance.randrange(2)}" for name in names if chance.random() < 0.3]
    linked = []
    if len(names) > 1 and chance.random() < 0.4:
        one, other = chance.sample(names, 2)
        linked = [f"{one}.x {chance.choice(('=', '<', '!='))} {other}.x"]
    return unary + linked


def _text(parts: list[_Part], more: list[_Part], conditions: list[str], ends: list[tuple[str, str]], options: str) -> str:
    known = {name for each in parts for name in each.names}
    said = [each for each in conditions if {word.split(".")[0] for word in each.split() if "." in word} <= known]
    lines = [f"MATCH {' AND '.join(each.element for each in (*parts, *more))}"]
    lines += [f"WHERE {' AND '.join(said)}"] if said else []
    retained = [clause.removeprefix("RETAIN ") for name, clause in ends if name in known and clause.startswith("RETAIN")]
    lines += [clause for name, clause in ends if name in known and not clause.startswith("RETAIN")]
    lines += [f"RETAIN {', '.join(retained)}"] if retained else []
    return "\n".join([*lines, options])


def _stream(names: list[str], tables: set[str], chance: Random) -> list[dict[str, int | str]]:
    time, found = 10, list[dict[str, int | str]]()
    drawn = [*names, *names, *sorted(tables), "E", "F"]
    for _ in range(chance.choice((9, 16, 24))):
        time += chance.choice((0, 0, 1, 1, 3, -3))
        found.append({"type": chance.choice(drawn), "k": chance.randrange(2), "x": chance.randrange(3), "at": time})
    return found
