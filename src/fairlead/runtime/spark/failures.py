"""Errors of Python workers, told as what they are.

A worker's error arrives at whoever runs an action as Spark's own exception, with the worker's traceback as its text. The coded
message stands in that text, and from it the error is made again.

Takes: exceptions of Spark. Gives: the FairleadError inside. Never: hides an error that is not Fairlead's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from fairlead import errors
from fairlead.errors import DataError, FairleadError

RAISED = re.compile(r"fairlead\.errors\.(\w+): ([A-Z]\d{3}) ([^\n]*)((?:\n {2,}[^\n]*)*)")
"""As `FairleadError.__str__` writes it: the code and the problem, then indented lines, the last of which may be the fix."""

SAID = re.compile(r"\[USER_RAISED_EXCEPTION\] (D\d{3}) (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
"""What an expression of Spark raised for Fairlead (sources.py)."""


def fairlead_error(error: BaseException) -> FairleadError | None:
    """The FairleadError of which Spark tells, or None."""
    if isinstance(error, FairleadError):
        return error
    text = str(error)
    found = RAISED.findall(text)
    if not found:
        said = SAID.search(text)
        return None if said is None else DataError(said[1], said[2], "mend it, or set bad records aside: on_bad skip")
    name, code, problem, more = found[-1]  # an error raised while another was handled stands behind it
    kind: type[FairleadError] = getattr(errors, name, FairleadError)
    fix = re.search(r"\n  fix: ([^\n]*)", more)
    return kind(code, problem, fix[1] if fix else None)


@contextmanager
def coded_errors() -> Iterator[None]:
    """Within it, an action that fails in Fairlead raises the FairleadError instead of Spark's exception.

    with fl.coded_errors():
        rows = relations.collect()
    """
    try:
        yield
    except FairleadError:
        raise
    except Exception as error:
        known = fairlead_error(error)
        if known is None:
            raise
        raise known from error
