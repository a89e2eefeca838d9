"""Converts errors of Python workers back to Fairlead's errors.

An error of a worker reaches the caller of an action as Spark's own exception, with the worker's traceback as its text. That
text contains the coded message, from which the error is reconstructed.

Takes: exceptions of Spark. Gives: the FairleadError inside. Never: hides an error that is not Fairlead's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from fairlead import errors
from fairlead.error_codes import CODES
from fairlead.errors import DataError, FairleadError, UsageError
from fairlead.runtime.spark.setup.readiness import stopped_error, store_error
from fairlead.runtime.spark.setup.workers import startup_error

RAISED = re.compile(r"fairlead\.errors\.(\w+): ([A-Z]\d{3}) ([^\n]*)((?:\n {2,}[^\n]*)*)")
"""As `FairleadError.__str__` writes it: the code and the problem, then indented lines, the last of which may be the fix."""

SAID = re.compile(r"\[USER_RAISED_EXCEPTION\] (D\d{3}) (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
"""The error of a Spark expression that Fairlead built (files.py)."""


NO_CHECKPOINT = "checkpointLocation must be specified"
NO_STORE = "STORE_BACKEND_NOT_SUPPORTED_FOR_TWS"
CONNECT = "pyspark.errors.exceptions.connect"
"""Where the errors of a remote session are defined."""
STOPPED = ("stopped SparkContext", "SparkContext was shut down", "SparkContext has been shutdown")


def fairlead_error(error: BaseException) -> FairleadError | None:
    """The FairleadError inside an exception of Spark, or the one that describes it; None for other exceptions."""
    if isinstance(error, FairleadError):
        return error
    text = str(error)
    found = [each for each in RAISED.findall(text) if each[1] in CODES]
    if not found:
        said = SAID.search(text)
        if said is None or said[1] not in CODES:
            return _of_spark(error)
        return DataError(said[1], said[2], 'correct the record, or set bad records aside: on_bad="skip"')
    name, code, problem, more = found[-1]  # an error raised while another was handled stands after it
    kind: type[FairleadError] = getattr(errors, name, FairleadError)
    fix = re.search(r"\n  fix: ([^\n]*)", more)
    return kind(code, problem, fix[1] if fix else None)


def _of_spark(error: BaseException) -> FairleadError | None:
    """Errors that only appear when a job starts, after the checks of `match`: settings may change in between."""
    text = str(error)
    if NO_CHECKPOINT in text:
        problem = "the stream has no checkpoint folder, which keeps its order and its state"
        return UsageError("A405", problem, 'writer.option("checkpointLocation", "/a/folder/of/this/stream")')
    if NO_STORE in text:
        return store_error("another store")
    if any(each in text for each in STOPPED):
        return stopped_error()
    return startup_error(text, remote=type(error).__module__ == CONNECT)


@contextmanager
def coded_errors() -> Iterator[None]:
    """Raise the FairleadError instead of Spark's exception if an action fails in Fairlead.

        with fl.coded_errors():
            rows = relations.collect()

    Spark's exception, with its long trace, is the `__context__` of the error.
    """
    try:
        yield
    except FairleadError:
        raise
    except Exception as error:
        known = fairlead_error(error)
        if known is None:
            raise
        raise known from None
