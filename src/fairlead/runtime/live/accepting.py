"""Errors raised to a publisher also say what happened to the events of the call.

Takes: an exception. Gives: the same error with a sentence about the events, and `accepted`. Never: changes an error object that
other callers receive too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairlead.errors import FairleadError

KEPT = "what was published is kept, and sent with the next publish or flush"
NOT_ACCEPTED = "what was to be published was not accepted"


@contextmanager
def telling(accepted: bool) -> Iterator[None]:
    try:
        yield
    except FairleadError as error:
        words = f"{error.problem}; {KEPT if accepted else NOT_ACCEPTED}"
        told = type(error)(error.code, words, error.fix, error.place, error.excerpt)
        told.accepted = accepted
        raise told from None
