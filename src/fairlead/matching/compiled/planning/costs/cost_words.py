"""Costs in words: the one place for the texts of what cost.py computes.

    cost_rows, cost_lines   when an event arrives, how its partners are found and the bound: for people
    cost_json               the same as data
    expense_words           why a search can take more than O(n log n) steps, and what helps (lint, W014)

Takes: what cost.py gives. Gives: texts. Never: computes a bound.
"""

from __future__ import annotations

from typing import assert_never

from fairlead.matching.compiled.planning.access import Way
from fairlead.matching.compiled.planning.arrival import (
    Arrival,
    BarredBy,
    Branching,
    ByHash,
    ByNeighbour,
    ByOrder,
    ByTree,
    Cause,
    EqualKeys,
    Excess,
    FirstQueued,
    Gathered,
    Leaving,
    NextQueued,
    Note,
    NotedFor,
    Plainly,
    ReadsMembers,
    Step,
    Walked,
)
from fairlead.matching.compiled.planning.costs.cost import Costs
from fairlead.matching.compiled.planning.costs.cost_bound import LETTERS, ONE, letters_of, shown

PLAIN_NOTES = {
    Plainly.TELLS_TIME: "it tells the time",
    Plainly.OVERLAPS: "types overlap: after a match every queue is walked for its members",
    Plainly.WAITS: "a complete relation is compared with what was noted, then it waits",
    Plainly.IS_DELAYED: "a complete relation waits until its time has passed",
    Plainly.IS_QUEUED: "it is queued: something has to come after it",
    Plainly.IS_SEVERAL: "it can be several members: everything is searched",
    Plainly.REPLACES: "it takes the place of the one with its key in the table",
}
JOINED = "join members in pairs, each by one comparison, without circles"
BRANCHING = {
    Branching.WIDE: "a condition reads three members or more",
    Branching.CIRCLE: "conditions between members form a circle",
    Branching.COMPARISONS: "what joins two members is more than one comparison",
    Branching.EVERY: "MATCHING ALL takes every combination of its partners",
    Branching.RUNS: "runs are walked for each combination of the other members, until HAVING is true",
}


REMEDIES = {
    Branching.EVERY: "write LIMIT n PER EVENT",
    Branching.RUNS: "compare a count of the run with a number, such as count(q) >= 3: nothing is walked before it is reached",
}


def cost_rows(costs: Costs) -> list[tuple[str, str, str]]:
    """When, how, and what it costs; a new "when" begins with the first of its rows."""
    made: list[tuple[str, str, str]] = []
    for each in costs.arrivals():
        how = [*map(step_words, each.steps), *map(note_words, each.notes)] or ["it is complete by itself"]
        when = f"when {_article(each.types[0])} {' or '.join(each.types)} arrives"
        made += [(when if not at else "", text, each.bound if at + 1 == len(how) else "") for at, text in enumerate(how)]
    loosely = costs.loosely()
    if loosely is not None:
        made.append(("after a match or expiry", "the next event searches over everything", shown(loosely)))
    made.append(("leaving", leaving_words(costs.leaving()), ""))
    return made


def cost_lines(costs: Costs) -> list[str]:
    """The rows as text, below what the letters in them mean."""
    bounds = [*(each.cost for each in costs.arrivals()), costs.loosely() or ONE, costs.leaving().most]
    letters = frozenset().union(*map(letters_of, bounds))
    meant = "; ".join(text for letter, text in LETTERS.items() if letter in letters)
    word = next((each.word for each in costs.noted), "")
    meaning = meant.format(clause=word) or "the same for queues of any length"
    made = cost_rows(costs)
    when, how = (max(len(row[at]) for row in made if at == 0 or row[2]) for at in (0, 1))
    return [meaning, *(f"{first:<{when}}   {text:<{how}}   {bound}".rstrip() for first, text, bound in made)]


def cost_json(costs: Costs) -> dict[str, object]:
    """All costs as a dict for JSON."""
    loosely = costs.loosely()
    return {
        "arrivals": [_arrival_json(each) for each in costs.arrivals()],
        "search_over_everything": None if loosely is None else shown(loosely),
        "leaving": leaving_words(costs.leaving()),
    }


def _arrival_json(arrival: Arrival) -> dict[str, object]:
    return {
        "types": list(arrival.types),
        "bound": arrival.bound,
        "steps": [
            {
                "member": each.member,
                "way": each.way.value,
                "index": index_words(each),
                "serves": list(each.serves),
                "tests": list(each.tests),
            }
            for each in arrival.steps
        ],
        "notes": [note_words(each) for each in arrival.notes],
    }


def index_words(step: Step) -> str:
    """What an index is on, or which event is taken without one."""
    match step:
        case ByTree() | ByHash():
            return step.index
        case ByNeighbour():
            return f"the neighbour of {step.beside or 'the new event'}"
        case NextQueued():
            return f"the next {'older' if step.older else 'one'} after {step.after}"
        case FirstQueued():
            return "the newest queued" if step.newest else "the oldest queued"
        case _:
            return ""


def step_words(step: Step) -> str:
    serves = " and ".join(f'"{each}"' for each in step.serves)
    tests = " and ".join(f'"{each}"' for each in step.tests)
    if step.way is Way.TREE and set(step.serves) & set(step.tests):
        serves = f"a part of {serves}"
    match step:
        case Walked(tests=()):
            return f"{step.member}: every queued event"
        case Walked():
            return f"{step.member}: no index, the queue is walked for {tests}"
        case ByTree():
            how = f"ordered index on {step.index} for {serves}"
        case ByHash():
            how = f"hash index on {step.index} for {serves}"
        case ByOrder():
            how = f"by place in the order for {serves}"
        case _:
            how = index_words(step)
    return f"{step.member}: {how}" + (f", then walked for {tests}" if tests else "")


def note_words(note: Note) -> str:
    match note:
        case Gathered():
            return gathered_words(note)
        case Plainly():
            return PLAIN_NOTES[note]
        case EqualKeys():
            return f"with equal {' and '.join(', '.join(key) for key in note.keys)}"
        case NotedFor():
            return f"noted for {note.word} {note.alias}" + (", it is compared with what waits" if note.waits else "")
        case BarredBy():
            return f"first compared with {'every event' if note.every else 'the event'} noted for {note.word} {note.alias}"
    assert_never(note)


def gathered_words(note: Gathered) -> str:
    """How a run is found."""
    said = [f"{_quoted(note.kept)} kept for its queue"] if note.kept else []
    said += [f"nothing is searched before its queue has {_quoted(note.before)}"] if note.before else []
    said += [f"then walked for {_quoted(note.walked)}"] if note.walked else []
    return f"{note.alias}: the run, {'; '.join(said) or 'all that is queued there'}"


def _quoted(texts: tuple[str, ...]) -> str:
    return " and ".join(f'"{each}"' for each in texts)


def leaving_words(leaving: Leaving) -> str:
    """What it costs that events leave, by disposal or by the window."""
    text = f"{shown(leaving.each)} for each event that leaves"
    if leaving.late is not None:
        text += f"; {shown(leaving.late)} when the clock of a key moves while a late event is queued"
    if leaving.waits:
        text += "; for each relation that a deadline decides, the logarithm of all that wait"
    return text


def expense_words(excess: Excess) -> tuple[str, str, str, str]:
    """What arrives, the bound, its cause, and what helps."""
    every = "event that can be several members" if excess.overlapping else "event after a match or expiry"
    return excess.type or every, shown(excess.cost), *_cause_words(excess.cause)


def _cause_words(cause: Cause) -> tuple[str, str]:
    match cause:
        case Branching():
            return BRANCHING[cause], REMEDIES.get(cause, JOINED)
        case ReadsMembers(word):
            text = f"each relation is compared with every event that {word} has noted, since its WHERE reads members"
            return text, f"leave out of the WHERE of the {word} what reads members, or say it with PER"
    assert_never(cause)


def _article(word: str) -> str:
    return "an" if word[0] in "AEIOUaeiou" else "a"
