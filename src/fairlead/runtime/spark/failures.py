"""What went wrong inside Spark, in Fairlead's own words: errors cross from its Python workers and its JVM as text.

Takes: an exception of pyspark. Gives: the FairleadError in it, if there is one. Never: hides another error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from fairlead import errors
from fairlead.errors import FairleadError

RAISED = re.compile(r"^\s*(?:\w+\.)*fairlead\.errors\.(\w+): (.*(?:\n(?:    |  fix: ).*)*)", re.MULTILINE)
"""The last lines of a Python worker's traceback: the head, an excerpt, the fix."""
SAID = re.compile(r"\[USER_RAISED_EXCEPTION\] (D\d{3}) (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)


@contextmanager
def in_own_words() -> Iterator[None]:
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        found = told(str(error))
        if found is None:
            raise
        raise found from None


def told(text: str) -> FairleadError | None:
    found = RAISED.search(text)
    if found is not None:
        kind = getattr(errors, found[1], FairleadError)
        head, _, fix = found[2].partition("\n  fix: ")
        code, _, problem = head.partition(" ")
        made: FairleadError = kind(code, problem, fix or None)
        return made
    found = SAID.search(text)
    if found is not None:
        return errors.DataError(found[1], found[2], "mend it, or set bad records aside: --on-bad skip")
    return None
