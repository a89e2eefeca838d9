"""Errors as responses: a status, and code, place, problem and fix as JSON.

Takes: any FairleadError. Gives: a response. Never: exposes internals: a bug is 500 without its traceback.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from fairlead.errors import DataError, FairleadError, LanguageError, LogError, StateError, UnsupportedError, UsageError
from fairlead.model.lint_warning import LintWarning

STATUS: dict[type[FairleadError], int] = {
    DataError: 422,
    LanguageError: 422,
    StateError: 409,
    LogError: 503,
    UnsupportedError: 501,
    UsageError: 400,
}
SPECIAL = {
    "A243": 409,  # the type is declared differently
    "A245": 409,  # the name is subscribed to other rules
    "A250": 404,  # no such subscriber
    "A270": 413,
    "A271": 415,
    "A272": 401,
    "A273": 403,
    "A275": 409,  # Last-Event-ID is of another subscription
    "A276": 409,  # … or is acknowledged
    "A277": 409,  # no stream is open
    "A279": 421,
    "A283": 413,
    "A284": 403,
    "A285": 429,
    "A286": 408,
    "D007": 413,
    "D011": 400,
    "D015": 400,
    "D016": 400,
    "D036": 409,  # a number out of order
    "N003": 403,
    "N042": 504,
}

HEADERS = {
    "A272": {"WWW-Authenticate": "Bearer"},
    "A285": {"Retry-After": "1"},
    "A286": {"Connection": "close"},
    "N041": {"Retry-After": "1", "Connection": "close"},
}


def status_of(error: FairleadError) -> int:
    return SPECIAL.get(error.code) or next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)


def told(error: FairleadError) -> dict[str, Any]:
    place = None if error.place is None else str(error.place)
    return {"code": error.code, "place": place, "problem": error.problem, "fix": error.fix}


def warning(found: LintWarning) -> dict[str, Any]:
    """In the form of an error."""
    place = None if found.place is None else str(found.place)
    return {"code": found.code, "place": place, "problem": found.problem, "fix": found.fix}


def answer(error: FairleadError) -> web.Response:
    return web.json_response(told(error), status=status_of(error), headers=HEADERS.get(error.code))
