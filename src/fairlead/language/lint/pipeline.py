"""All lint rules in their order, over all subscriptions in the order of the text.

Takes: the checked subscriptions. Gives: warnings. Never: stops a compilation or changes a plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.language.checking.subscription import Checked
from fairlead.language.clauses.registry import LINT
from fairlead.language.lint import clauses, conditions, folding, instances, sequences, topics
from fairlead.language.lint.finding import LintFinding, Rule
from fairlead.language.parsing import syntax
from fairlead.language.parsing.text import RuleText
from fairlead.model.events.types import Catalogue
from fairlead.model.lint_warning import LintWarning

RULES: tuple[Rule, ...] = (
    conditions.equality_without_per,
    instances.one_type_twice,
    instances.order_that_never_matches,
    instances.index_missing,
    instances.recent_runs_backwards,
    instances.broken_rise,
    instances.end_that_cannot_begin,
    *LINT,
    sequences.end_that_waits,
    sequences.overlapping_rounds,
    sequences.rows_without_limit,
    sequences.counted_too_early,
    conditions.constant,
    conditions.not_in_null,
    clauses.floating_key,
    clauses.unbounded_queues,
    clauses.endless_buckets,
    folding.long_run,
    topics.order_between_topics,
)


def lint(checked: Sequence[Checked], catalogue: Catalogue, rules: syntax.Rules, source: RuleText) -> tuple[LintWarning, ...]:
    found = [(each.subscription.name, finding) for each in checked for rule in RULES for finding in rule(each, catalogue)]
    whole = [(None, finding) for finding in conditions.unused_types(checked, catalogue, rules)]
    return tuple(_warning(finding, name, source) for name, finding in (*found, *whole))


def _warning(finding: LintFinding, subscription: str | None, source: RuleText) -> LintWarning:
    return LintWarning(finding.code, finding.problem, finding.fix, source.place(finding.span), subscription)
