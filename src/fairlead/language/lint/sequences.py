"""W026 to W029: what sequences wait for, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.checking.subscription import Checked
from fairlead.language.lint.finding import LintFinding
from fairlead.language.parsing import syntax
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import Aggregate, Compare, Literal
from fairlead.model.plans.sequence import Chain, Choice, Loop, SequencePart, Take, can_be_empty, ends_by_time


def end_that_waits(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W026: a run at the end takes as many events as there are, so it is delivered when it ends."""
    for shape in checked.shapes:
        tree = checked.sequences.get(shape.slots)
        if tree is None or "LONGEST" in _ends(shape.pattern) or not ends_by_time(tree, True):
            continue
        timed = ends_by_time(tree, checked.subscription.within_us is not None)
        until = "an event of its key ends it, or the time limit passes" if timed else "an event of its key ends it"
        problem = f"the sequence ends with a run that takes as many events as there are: it is delivered when {until}"
        yield LintFinding(
            "W026", shape.pattern.span, problem, "write SHORTEST for the first match, or LONGEST if you mean this"
        )


def _ends(pattern: syntax.Pattern) -> set[str]:
    """LONGEST and SHORTEST, where they are written."""
    if isinstance(pattern, syntax.Element | syntax.Group):
        own = {pattern.repeat.end} if pattern.repeat is not None and pattern.repeat.end is not None else set()
        return own if isinstance(pattern, syntax.Element) else own | _ends(pattern.pattern)
    return set().union(*map(_ends, pattern.parts))


def overlapping_rounds(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W027: there are very many ways in which `(A a+)+` can take the same rows."""
    for shape in checked.shapes:
        tree = checked.sequences.get(shape.slots)
        if tree is not None and not checked.subscription.matching.stepwise and _overlaps(tree):
            problem = "a repeated group repeats a run, and nothing separates its rounds: the search can take long"
            fix = "leave out the quantifier of the group, or put an element or a condition between its rounds"
            yield LintFinding("W027", shape.pattern.span, problem, fix)


def _overlaps(part: SequencePart) -> bool:
    match part:
        case Take():
            return False
        case Loop():
            return (part.most is None and _only_repeats(part.body)) or _overlaps(part.body)
        case Chain() | Choice():
            return any(map(_overlaps, part.parts))


def _only_repeats(part: SequencePart) -> bool:
    """Whether it can be one run alone."""
    match part:
        case Take():
            return False
        case Loop():
            return part.most is None or _only_repeats(part.body)
        case Choice():
            return any(map(_only_repeats, part.parts))
        case Chain():
            others = [[*part.parts[:at], *part.parts[at + 1 :]] for at in range(len(part.parts))]
            return any(
                _only_repeats(each) and all(map(can_be_empty, rest)) for each, rest in zip(part.parts, others, strict=True)
            )


def counted_too_early(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W029: `count(q) >= 3` in WHERE is asked of the first event of the run, which is one."""
    for branch, placed in zip(checked.subscription.branches, checked.conjuncts, strict=True):
        for conjunct, predicate in placed if branch.sequence is not None else ():
            atom = predicate.condition.terms[0][0] if len(predicate.condition.terms) == 1 else None
            match atom:
                case Compare(
                    operator=">" | ">=", left=Aggregate(function="count", slots=(slot,)), right=Literal(value=int(most))
                ):
                    least = most + (atom.operator == ">")
                    if slot in branch.runs and branch.sequence is not None and least > 1 and predicate.slots == (slot,):
                        alias = branch.slots[slot].alias
                        problem = f"'{predicate.text}' is asked of each event of '{alias}': the first is not taken, so none is"
                        yield LintFinding("W029", conjunct.span, problem, f"move it to HAVING, or write {alias}{{{least},}}")


def rows_without_limit(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W028: after THEN everything is kept until the next part comes."""
    if checked.subscription.within_us is not None:
        return
    for shape in checked.shapes:
        if shape.slots in checked.sequences and _skips(checked.sequences[shape.slots]):
            problem = "a sequence that skips events keeps all of its key until the next part comes, and nothing limits how long"
            yield LintFinding("W028", shape.pattern.span, problem, "add WITHIN, or write NEXT")
            return


def _skips(part: SequencePart) -> bool:
    match part:
        case Take():
            return False
        case Loop():
            return _skips(part.body)
        case Choice():
            return any(map(_skips, part.parts))
        case Chain():
            return any(part.skips) or any(map(_skips, part.parts))
