"""Random scenarios for a wanted shape. The same seed, shape and number produce the same scenario.

Values are 0 to 3 and types A to E: every violation that remains after shrinking needs no more. Half of the scenarios with equal
subscribers end in a repeated period, for the validity properties.
"""

from __future__ import annotations

from random import Random

from fairlead.guarantees.shape import ConjunctionShape, is_at_most, shape_of
from fairlead.model.guarantee import Property
from fairlead.testing.counterexamples.scenarios import BEFORE, Link, Pattern, Scenario, ScenarioEvent, Unary, branch_of

ROUNDS = 8
"""Repetitions of a period: the horizon of 3, and room for up to five events that go first."""
VALUES = 4
SIGNS = ("<", "<=", "=", "!=", ">", ">=")
ORDERS = frozenset({Property.TYPE_TOTAL_ORDER, Property.TYPE_FIFO_ORDER, Property.TYPE_LOCAL_ORDER, Property.TYPE_CAUSAL_ORDER})
JUDGED: dict[str, frozenset[Property]] = {
    "equal": frozenset(Property),
    "alone": frozenset(Property),
    "observer": ORDERS,
    "extended": frozenset({Property.COVERING_AGREEMENT}),
    "sibling": frozenset({Property.CONJUNCTION_TOTAL_ORDER}),
    "disjunction": frozenset({Property.DISJUNCTION_TOTAL_ORDER, Property.CONJUNCTION_AGREEMENT}),
}
"""The properties that each kind of scenario is checked for: only those that depend on the first subscriber's shape. An
extension can have a richer shape, so it is checked for covering alone; an observer of single events never loses an order
itself."""
KINDS = ("equal", "equal", "equal", "observer", "observer", "extended", "extended", "sibling", "disjunction")


def scenario(shape: ConjunctionShape, seed: int, number: int) -> Scenario:
    chance = Random(f"{seed}/{shape.code}/{number}")
    pattern = pattern_of(shape, chance)
    kind = chance.choice(KINDS)
    match kind:
        case "observer":
            extra = Pattern(((chance.choice(pattern.types)[0], 1),))
            return Scenario(kind, pattern, extra, _steps(pattern, None, chance, "p2"))
        case "extended":
            extra = _extension("D", chance)
            return Scenario(kind, pattern, extra, _steps(pattern, extra, chance))
        case "sibling":
            return _sibling(shape, pattern, chance)
        case "disjunction":
            extra = pattern_of(shape, chance)
            if extra != pattern:  # a disjunction does not list a conjunction twice
                return Scenario(kind, pattern, extra, _steps(pattern, extra, chance))
    if chance.random() < 0.6:
        steps = _steps(pattern, None, chance, longest=4) if chance.random() < 0.7 else ()
        again = _steps(pattern, None, chance, longest=5)
        return Scenario("equal", pattern, pattern, steps + again, period=len(again), rounds=ROUNDS)
    return Scenario("equal", pattern, pattern, _steps(pattern, None, chance))


def _sibling(shape: ConjunctionShape, pattern: Pattern, chance: Random) -> Scenario:
    """Both extend one prefix; the second is no richer than the first, so the first's shape determines the result."""
    cuts = [at for at in range(1, len(pattern.types) + 1) if pattern.splits(at)]
    cut, extra = chance.choice(cuts), _extension("E", chance)
    made = Scenario("sibling", pattern, extra, _steps(pattern, extra, chance), cut)
    if not sibling_fits(made, shape):
        return Scenario("equal", pattern, pattern, _steps(pattern, None, chance))
    return made


def sibling_fits(made: Scenario, shape: ConjunctionShape) -> bool:
    return is_at_most(shape_of(branch_of(made.processes[1][0])), shape)


def pattern_of(shape: ConjunctionShape, chance: Random) -> Pattern:
    """A pattern of exactly this shape: drawn until one fits."""
    while True:
        drawn = _draw(shape, chance)
        if shape_of(branch_of(drawn)) is shape:
            return drawn


def _draw(shape: ConjunctionShape, chance: Random) -> Pattern:
    several = shape.code.startswith("N")
    names = ["A", "B", "C"][: chance.choice((2, 2, 3)) if several else 1]
    if shape is ConjunctionShape.SEVERAL_ALIKE_ACROSS:
        names = ["A", "B", "C"]
    counts = dict.fromkeys(names, 1)
    if shape not in (ConjunctionShape.EVENT, ConjunctionShape.SINGLES, ConjunctionShape.SINGLES_ACROSS):
        counts[chance.choice(names)] = chance.choice((2, 2, 3))
    types = tuple(counts.items())
    signature = Pattern(types).signature
    slots = range(len(signature))
    links = tuple(_link(shape, signature, chance) for _ in range(chance.choice((1, 1, 2)))) if _linked(shape) else ()
    alike = shape in (ConjunctionShape.ALIKE, ConjunctionShape.SEVERAL_ALIKE, ConjunctionShape.SEVERAL_ALIKE_ACROSS)
    unary: list[Unary] = []
    for name in names:
        own = [slot for slot in slots if signature[slot] == name]
        if alike:
            if chance.random() < 0.3:
                sign, value = chance.choice(SIGNS), chance.randrange(VALUES)
                unary += [(slot, sign, value) for slot in own]
        else:
            often = (0.6 if not links else 0.3) if len(own) > 1 else 0.15
            unary += [(slot, chance.choice(SIGNS), chance.randrange(VALUES)) for slot in own if chance.random() < often]
    return Pattern(types, tuple(unary), tuple(dict.fromkeys(links)))


def _linked(shape: ConjunctionShape) -> bool:
    return shape.code.endswith(("W", "X"))


def _link(shape: ConjunctionShape, signature: tuple[str, ...], chance: Random) -> Link:
    pairs = [(a, b) for a in range(len(signature)) for b in range(len(signature)) if a != b]
    if shape in (ConjunctionShape.WITHIN, ConjunctionShape.SEVERAL_WITHIN):
        pairs = [(a, b) for a, b in pairs if signature[a] == signature[b]]
        return _signed(chance.choice(pairs), chance.choice(SIGNS))
    across = [(a, b) for a, b in pairs if signature[a] != signature[b]]
    single = [(a, b) for a, b in across if signature.count(signature[a]) == signature.count(signature[b]) == 1]
    if shape is ConjunctionShape.SEVERAL_ALIKE_ACROSS and single:
        across = single
    return _signed(chance.choice(across), chance.choice((*SIGNS, BEFORE)))


def _signed(pair: tuple[int, int], sign: str) -> Link:
    return (pair[0], sign, pair[1])


def _extension(name: str, chance: Random) -> Pattern:
    unary: tuple[Unary, ...] = ((0, chance.choice(SIGNS), chance.randrange(VALUES)),) if chance.random() < 0.2 else ()
    return Pattern(((name, 1),), unary)


def _steps(
    pattern: Pattern, extra: Pattern | None, chance: Random, subscriber: str = "", longest: int = 9
) -> tuple[ScenarioEvent, ...]:
    """Events of the pattern's types; those of the extension among them, or late, when much is queued already."""
    names = [name for name, count in pattern.types for _ in range(count)]
    late = [name for name, _ in extra.types] if extra else []
    publishers = ["p3"] if chance.random() < 0.5 else ["p3", "p4", subscriber or "p4"]
    size = chance.randint(min(3, longest - 2), longest - 2 * len(late))
    drawn = [chance.choice(names) for _ in range(size)]
    for name in late * chance.randint(1, 3):
        drawn.insert(len(drawn) if chance.random() < 0.5 else chance.randint(0, len(drawn)), name)
    return tuple(ScenarioEvent(name, chance.randrange(VALUES), chance.choice(publishers)) for name in drawn)
