"""W002 to W005, W015, W020: several instances of one type share a queue, and their numbers say in which order they stand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from fairlead.language.checking.pattern import BranchPattern
from fairlead.language.checking.subscription import Checked
from fairlead.language.lint.finding import LintFinding, expressions, outside_aggregates
from fairlead.language.parsing import syntax
from fairlead.model.events.types import PATH, Catalogue, EventType
from fairlead.model.expressions.expression import Compare, Field, Predicate, leaves
from fairlead.model.plans.plan import Branch


def one_type_twice(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W002: `A x AND A y` is not "in any order": both sit in the queue of A."""
    relation = "after" if checked.subscription.matching.recent else "before"
    for shape in checked.assignments:
        ordered = _ordered(shape)
        for one, other in combinations(shape.nodes, 2):
            x, y = one.alias.text, other.alias.text
            if one.type.text == other.type.text and (x, y) not in ordered:
                problem = f"'{x}' and '{y}' are instances of one queue: {x} always comes {relation} {y}"
                fix = (
                    f"write {one.type.text} {x} THEN {one.type.text} {y} if you mean that"
                    if relation == "before"
                    else (f"use MATCHING FIRST if {x} must come before {y}")
                )
                yield LintFinding("W002", other.span, problem, fix)


def order_that_never_matches(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W003: THEN asks for the opposite of the order in which the matching option numbers the instances."""
    recent = checked.subscription.matching.recent
    for shape in checked.assignments:
        aliases = {node.alias.text: node for node in shape.nodes}
        for x, y in sorted(_ordered(shape)):
            one, other = shape.members[x], shape.members[y]
            if one.type == other.type and (one.slots[0] < other.slots[0]) == recent:
                problem = f"this never matches: under {checked.subscription.matching.words} '{y}' is older than '{x}'"
                yield LintFinding("W003", aliases[y].span, problem, "use MATCHING FIRST, or AND in place of THEN")


def index_missing(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W004: `q.value` where q has several instances means the first. Not reported for a key: all instances have the same."""
    counts = {element.alias.text: element.count.value for shape in checked.shapes for element in shape.nodes if element.count}
    if max(counts.values(), default=1) == 1:
        return
    said: set[str] = set()
    for expression in expressions(checked.node):
        for each in outside_aggregates(expression):
            alias = _meant(each, checked)
            if alias is None or each.index is not None or counts.get(alias, 1) == 1:
                continue
            if alias not in said and not _is_key(each, alias, checked):
                said.add(alias)
                shown = str(each) if each.head.text == alias else f"{alias}.{each}"
                problem = f"'{each}' means the first instance of '{alias}' only"
                yield LintFinding(
                    "W004", each.span, problem, f"write {shown.replace(alias, f'{alias}[1]', 1)}, or an aggregate of all"
                )


def recent_runs_backwards(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W005: under RECENT q[1] is the newest. Not reported if nothing distinguishes the instances."""
    if not checked.subscription.matching.recent:
        return
    told_apart = {each.head.text for node in expressions(checked.node) for each in syntax.references(node) if each.index}
    for shape in checked.shapes:
        for element in shape.nodes:
            alias = element.alias.text
            if element.count and element.count.value > 1 and alias in told_apart:
                problem = f"under RECENT instance 2 is older than instance 1: {alias}[1] is the newest"
                yield LintFinding("W005", element.span, problem, "number the instances from the newest, or use MATCHING FIRST")


def broken_rise(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W015: `q[1].x < q[2].x AND q[2].x < q[3].x` reads like an unbroken run, but other events may be in between: of any key
    without PER. With PER it is reported for a pattern of one type: beside others, "in between" is not clear."""
    if checked.subscription.matching.contiguous:
        return
    for branch, placed in zip(checked.subscription.branches, checked.conjuncts, strict=True):
        if branch.sequence is not None or (checked.subscription.per and len(branch.queue_types) > 1):
            continue
        steps: dict[tuple[str, str], int] = {}
        for conjunct, predicate in placed:
            rising = _rising(predicate, branch)
            if rising is None:
                continue
            steps[rising] = steps.get(rising, 0) + 1
            if steps[rising] == 2:
                name = branch.slots[predicate.slots[0]].type
                problem = f"'{predicate.text}': events of {name} between those that rise or fall are skipped"
                words = f"MATCHING {'RECENT' if checked.subscription.matching.recent else 'FIRST'} CONTIGUOUS"
                fix = f"add {words} for an unbroken run" + (
                    "" if checked.subscription.per else ", PER for the events of one key, or both"
                )
                yield LintFinding("W015", conjunct.span, problem, fix)
                return


def end_that_cannot_begin(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W020: two events of one type that differ (logins far apart, a jump of a price) read like "each event and the one before
    it", but without DISPOSAL an event belongs to one relation, and without CONTIGUOUS the oldest one is taken. Reported for
    events of one key, where the text says no DISPOSAL."""
    if not checked.subscription.per or any(isinstance(each, syntax.DisposalClause) for each in checked.node.clauses):
        return
    for branch, placed in zip(checked.subscription.branches, checked.conjuncts, strict=True):
        if branch.sequence is not None or len(branch.slots) != 2 or len(branch.queue_types) > 1:
            continue
        for conjunct, predicate in placed:
            if predicate.slots == (0, 1) and _differ(predicate, catalogue[branch.slots[0].type]):
                name = branch.slots[0].type
                problem = f"{_article(name)} {name} that ends a relation cannot begin the next, and others may be in between"
                words = f"MATCHING {'RECENT' if checked.subscription.matching.recent else 'FIRST'} CONTIGUOUS"
                fix = (
                    f"to compare each with the one before it, write {words} DISPOSAL FIRST PREFIX; if each is to be in one"
                    " relation at most, DISPOSAL PREFIX INFIX"
                )
                yield LintFinding("W020", conjunct.span, problem, fix)
                return


def _article(name: str) -> str:
    return "an" if name[0] in "AEIOUaeiou" else "a"


def _differ(predicate: Predicate, schema: EventType) -> bool:
    """Whether it compares two events other than by equality, in more than their time."""
    for term in predicate.condition.terms:
        for atom in term:
            slots = {slot for leaf in leaves(atom) for slot in leaf.slots}
            values = {leaf.attribute for leaf in leaves(atom) if isinstance(leaf, Field)} - {schema.time_attribute}
            if isinstance(atom, Compare) and atom.operator != "=" and len(slots) == 2 and values:
                return True
    return False


def _rising(predicate: Predicate, branch: Branch) -> tuple[str, str] | None:
    """The type and attribute if an instance is compared with the next."""
    match predicate.condition.terms:
        case ((Compare("<" | ">" | "<=" | ">=", Field() as left, Field() as right),),):
            one, other = branch.slots[left.slot], branch.slots[right.slot]
            beside = one.type == other.type and abs(one.instance - other.instance) == 1
            return (one.type, left.attribute) if beside and left.attribute == right.attribute else None
    return None


def _ordered(shape: BranchPattern) -> set[tuple[str, str]]:
    """Pairs of aliases that are put in order."""
    return {(shape.slots[left].alias, shape.slots[right].alias) for each in shape.clauses for left, right in each.orders}


def _is_key(reference: syntax.Reference, alias: str, checked: Checked) -> bool:
    qualified = reference.head.text == alias and bool(reference.names)
    names = reference.names if qualified else (reference.head, *reference.names)
    attribute = PATH.join(each.text for each in names)
    having = [
        (branch, shape.members[alias].type.name)
        for branch, shape in zip(checked.subscription.branches, checked.assignments, strict=True)
        if alias in shape.members
    ]
    return bool(having) and all(attribute in dict(branch.keys).get(name, ()) for branch, name in having)


def _meant(reference: syntax.Reference, checked: Checked) -> str | None:
    """The alias that a reference reads, also where only the attribute is written."""
    head = reference.head.text
    for shape in checked.assignments:
        having = [member.alias for member in shape.members.values() if member.type.attribute(head)]
        if having and (reference.attribute is None or head not in shape.members):
            return having[0]
        if head in shape.members:
            return head
    return None
