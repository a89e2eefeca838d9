"""Why a property is lost, one sentence for each clause that can be to blame.

Takes: the property and what is to blame. Gives: the sentence. `Blame` is also the order in which clauses are suspected.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from fairlead.model.guarantee import Property


class Blame(Enum):
    RECENT = auto()
    CONTIGUOUS = auto()
    INFIX = auto()
    INFIX_POSTFIX = auto()
    FIRST_PREFIX = auto()
    ADVANCE = auto()
    UPTO = auto()
    NONE = auto()
    KEEP = auto()
    ALL = auto()
    LIMIT = auto()
    PATTERN = auto()
    """The conditions between members, or between the instances of a type: lost even under FIRST and PREFIX INFIX."""


_PASSED_OVER = "an event that a relation passed over stays queued and is delivered after a newer one of its type"
_NEWER_FIRST = "the newest events are taken first and older ones stay queued, to be delivered after them"
_SLID_OVER = "only the first matched event leaves the queue, so one that was passed over can be delivered after a newer one"
_AGAIN = "matched events stay queued, so an older one is delivered again, or first, after a newer one of its type"
_LATER = "an extended pattern matches later, with events that were left or have arrived in the meantime"
_ORDER: Mapping[Blame, str] = {
    Blame.RECENT: _NEWER_FIRST,
    Blame.CONTIGUOUS: _PASSED_OVER,
    Blame.INFIX: _PASSED_OVER,
    Blame.INFIX_POSTFIX: "what stands before a matched event stays queued and can be delivered after it",
    Blame.FIRST_PREFIX: _SLID_OVER,
    Blame.ADVANCE: _SLID_OVER.replace("only the first matched event leaves", "the last matched events do not leave"),
    Blame.UPTO: _AGAIN,
    Blame.NONE: _AGAIN,
    Blame.KEEP: _AGAIN,
    Blame.ALL: "an event completes several relations, which deliver older and newer events of a type in turn",
    Blame.LIMIT: _PASSED_OVER,
    Blame.PATTERN: _PASSED_OVER,
}
_PARTS = "two subscribers that extend the same pattern complete it at different times and take its parts in different orders"

REASONS: Mapping[Property, Mapping[Blame, str]] = {
    Property.NO_DUPLICATION: {
        Blame.FIRST_PREFIX: "only the first matched event of each type leaves its queue, so the others are delivered again",
        Blame.ADVANCE: "the matched events after the n-th stay in their queue and are delivered again",
        Blame.UPTO: "matched events that are not before the one that UPTO names stay in their queues and are delivered again",
        Blame.NONE: "matched events stay in their queues and are delivered again",
        Blame.KEEP: "the matched events of an element that KEEP names stay in their queue and are delivered again",
        Blame.ALL: "an event is delivered with each of its partners",
    },
    Property.NO_DUPLICATION_IN_PLACE: {
        Blame.FIRST_PREFIX: "another first event can be completed by a later event that was delivered in that place already",
        **dict.fromkeys(
            (Blame.ADVANCE, Blame.UPTO, Blame.NONE, Blame.KEEP),
            "a matched event that stays queued can be delivered in the same place again",
        ),
        Blame.ALL: "an event is delivered with each of its partners, in the same place",
    },
    Property.CONJUNCTION_VALIDITY: {
        Blame.CONTIGUOUS: "events that fit but are never neighbours in their queue are never delivered, however many come",
    },
    Property.EVENT_VALIDITY: {
        Blame.RECENT: "newer events are taken first, so an older one can be dropped or wait for ever",
        Blame.CONTIGUOUS: "an event whose neighbour in the queue does not fit is passed over every time",
        Blame.INFIX_POSTFIX: "what stands after a matched event in its queue is dropped without being delivered",
        Blame.UPTO: "what stands before the event that UPTO names is dropped without delivery, or one that stays goes first",
        Blame.NONE: "a matched event stays queued and is taken first every time, so those after it wait for ever",
        Blame.KEEP: "a kept event stays queued and is taken first every time, so those after it wait for ever",
        Blame.ALL: "the members of all relations of an event leave together, with what stands before them",
        Blame.LIMIT: "relations beyond the limit are not delivered, and none of them is found again",
        Blame.PATTERN: "an event that fits one instance only is dropped when a relation of its neighbours passes over it",
    },
    Property.COVERING_AGREEMENT: {
        Blame.RECENT: "an extended pattern matches later and then takes newer events",
        Blame.CONTIGUOUS: "an extended pattern matches later, when another choice comes first",
        Blame.INFIX: "an extended pattern matches later, when another choice comes first",
        Blame.INFIX_POSTFIX: "an extended pattern matches later and drops events that the plain one still has",
        Blame.FIRST_PREFIX: "an extended pattern matches at more arrivals, with events that FIRST PREFIX has left",
        **dict.fromkeys((Blame.ADVANCE, Blame.UPTO, Blame.NONE, Blame.KEEP, Blame.ALL, Blame.LIMIT), _LATER),
        Blame.PATTERN: "an extended pattern matches later, and takes an older event whose partner has arrived",
    },
    Property.TYPE_TOTAL_ORDER: _ORDER,
    Property.CONJUNCTION_TOTAL_ORDER: dict.fromkeys(Blame, _PARTS),
    Property.TYPE_FIFO_ORDER: _ORDER,
    Property.TYPE_LOCAL_ORDER: _ORDER,
    Property.TYPE_CAUSAL_ORDER: _ORDER,
}


def reason(lost: Property, blame: Blame) -> str:
    return REASONS.get(lost, {}).get(blame, "a trace found by search shows it")
