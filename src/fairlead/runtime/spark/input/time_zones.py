"""Times without a zone, as in Spark: they are in the session's zone.

A column that is read as a TIMESTAMP means the instant that CAST(column AS TIMESTAMP) returns in its session: a `timestamp` is
an instant; a `timestamp_ntz`, or a text such as '2026-03-08 02:30:00', is a clock reading in the session's zone, with Spark's
rules for hours that a clock skips or shows twice. In a session with UTC that equals every other runtime of Fairlead.

Spark does not decide which texts are times: it accepts '2026', reads 'T10:00' as today and truncates digits. A text without a
zone gets one if Spark and Fairlead read it alike, and becomes a bad record if they may not.

Takes: columns. Gives: columns. Never: changes a text that contains its offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

ZONED = r"^.{11,}[+-]|[Zz]$"
"""An offset follows a date and an hour; earlier, a sign is part of the date."""
PLAIN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6}0*)?)?)?$"
YEAR = r"^[0-9]{4}"
NO_ZONE = " (no time zone)"


def instants(column: Column) -> Column:
    """Instants of times with or without a zone. `timestamp_ltz`, since `timestamp` has no zone if the session is configured
    so."""
    return column.cast("timestamp_ltz")


def zoned_texts(column: Column) -> Column:
    """Texts with a zone."""
    from pyspark.sql import functions as F

    text = column.cast("string")
    epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    instant = F.unix_micros(text.try_cast("timestamp_ltz"))
    in_utc = F.concat(F.timestamp_add("MICROSECOND", instant, epoch).cast("string"), F.lit("Z"))
    read = F.when(text.rlike(PLAIN), in_utc)  # null if the text has that form but is not a valid time
    unclear = F.when(text.rlike(YEAR), F.concat(text, F.lit(NO_ZONE))).otherwise(text)
    return F.when(text.rlike(ZONED), text).otherwise(F.coalesce(read, unclear))
