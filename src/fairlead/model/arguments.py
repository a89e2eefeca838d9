"""Arguments of the public API: each of an accepted type, or an error that says which call, which argument, what was passed and
what to pass instead. Without this check a wrong argument fails far away, with a traceback through other code.

Takes: a value from a caller. Raises: UsageError (A001, A003, A010). Never: converts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fairlead.errors import UsageError
from fairlead.model.plans.plan import Plan, Subscription


def require_kind(call: str, argument: str, value: Any, kinds: tuple[type, ...], accepts: str, fix: str) -> None:
    """`kinds`: the accepted classes; a bool is not a number."""
    if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
        return
    raise wrong_kind(call, argument, value, accepts, fix)


def require_call(call: str, argument: str, value: Any, fix: str) -> None:
    if not callable(value):
        raise wrong_kind(call, argument, value, "a function", fix)


def require_names(call: str, argument: str, value: Any, fix: str, *, ordered: bool = False) -> None:
    """Several names: a collection of texts, not one text; a sequence, where their order matters."""
    several = isinstance(value, Sequence if ordered else Collection) and not isinstance(value, str | bytes)
    if not several or not all(isinstance(each, str) for each in value):
        raise wrong_kind(call, argument, value, f"a {'sequence' if ordered else 'collection'} of names", fix)


def wrong_kind(call: str, argument: str, value: Any, accepts: str, fix: str) -> UsageError:
    given = type(value).__name__
    if isinstance(value, list | tuple | set | frozenset | dict) and value:
        given += f" of {type(next(iter(value))).__name__}"
    return UsageError("A010", f"`{argument}` is {given}, and {call} accepts {accepts}", fix, place=f"{call}({argument}=…)")


def require_plan(call: str, plan: Any, fix: str) -> None:
    if not isinstance(plan, Plan):
        raise UsageError("A003", f"{call} accepts a compiled plan, not {type(plan).__name__}", fix, place=f"{call}(plan=…)")


def subscription_named(plan: Plan, name: Any) -> Subscription:
    for each in plan.subscriptions:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in plan.subscriptions)
    raise UsageError("A001", f"the plan has no subscription {name!r}", fix=f"use one of: {known}")
