"""Fairlead: every subscriber with the same interest gets the same composite events, in the same order."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairlead.matching.compiled.machine_code import surroundings

if TYPE_CHECKING:
    from fairlead.deliver.receipt import Comparison, Receipt, compare
    from fairlead.engine import Engine, compile
    from fairlead.errors import DataError, FairleadError, LanguageError, LogError, StateError, UnsupportedError, UsageError
    from fairlead.explanation import Explanation, explain
    from fairlead.model.events.event import Event
    from fairlead.model.events.position import Position
    from fairlead.model.events.verdict import EventReport, EventVerdict
    from fairlead.model.guarantee import Guarantee, Property, Verdict
    from fairlead.model.plans.plan import Plan, Subscription
    from fairlead.model.relations.relation import Relation
    from fairlead.runtime.embedded import Run, match
    from fairlead.runtime.live.client import connect

__version__ = "0.1.0"

_HOME = {
    "fairlead.deliver.receipt": ("Comparison", "Receipt", "compare"),
    "fairlead.engine": ("Engine", "compile"),
    "fairlead.errors": (
        "DataError",
        "FairleadError",
        "LanguageError",
        "LogError",
        "StateError",
        "UnsupportedError",
        "UsageError",
    ),
    "fairlead.explanation": ("Explanation", "explain"),
    "fairlead.model.events.event": ("Event",),
    "fairlead.model.guarantee": ("Guarantee", "Property", "Verdict"),
    "fairlead.model.plans.plan": ("Plan", "Subscription"),
    "fairlead.model.events.position": ("Position",),
    "fairlead.model.relations.relation": ("Relation",),
    "fairlead.model.events.verdict": ("EventReport", "EventVerdict"),
    "fairlead.runtime.embedded": ("Run", "match"),
    "fairlead.runtime.result": ("Result",),
    "fairlead.runtime.live.client": ("connect",),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    """Public names load their module on first use, so that `fairlead --help` does not wait for Arrow."""
    if name not in _MODULE:
        raise AttributeError(f"module 'fairlead' has no attribute {name!r}")
    value = getattr(import_module(_MODULE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, also those that are not loaded yet: what a prompt completes."""
    return sorted({*globals(), *_MODULE, "spark"})


def _user_cache() -> surroundings.Surroundings:
    from fairlead.runtime.user_cache import UserCache

    return UserCache()


surroundings.give(_user_cache)
"""The one place that connects the core to a disk. Every process runs it before anything else of Fairlead: a script, a
command, a worker of Spark."""

__all__ = [
    "Comparison", "DataError", "Engine", "Event", "EventReport", "EventVerdict", "Explanation", "FairleadError", "Guarantee",
    "LanguageError", "LogError", "Plan", "Position", "Property", "Receipt", "Relation", "Result", "Run", "StateError",
    "Subscription", "UnsupportedError", "UsageError", "Verdict", "compare", "compile", "connect", "explain", "match",
]  # fmt: skip
