"""Times without a zone, as Spark takes them: they are of the session's zone.

A column that stands for a TIMESTAMP means the instant that CAST(column AS TIMESTAMP) gives in its session: a `timestamp` is it,
a `timestamp_ntz`, or a text such as '2026-03-08 02:30:00', is the reading of a clock in the session's zone, with Spark's rules
for hours that a clock skips or shows twice. In a session of UTC that is what every other runtime of Fairlead makes of it.

Which texts are times is not Spark's to say, which takes '2026', reads 'T10:00' as today and cuts digits off: a text that has no
zone gets one where Spark and Fairlead read it alike, and becomes a bad record where they may not.

Takes: columns. Gives: columns. Never: touches a text that names its offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

ZONED = r"^.{11,}[+-]|[Zz]$"
"""An offset stands behind a date and an hour; before, a sign is part of the date."""
PLAIN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6}0*)?)?)?$"
YEAR = r"^[0-9]{4}"
NO_ZONE = " (no time zone)"


def instants(column: Column) -> Column:
    """Of times with or without a zone. By this name, since `timestamp` is a type without a zone where a session says so."""
    return column.cast("timestamp_ltz")


def zoned_texts(column: Column) -> Column:
    """Texts with a zone."""
    from pyspark.sql import functions as F

    text = column.cast("string")
    epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    instant = F.unix_micros(text.try_cast("timestamp_ltz"))
    in_utc = F.concat(F.timestamp_add("MICROSECOND", instant, epoch).cast("string"), F.lit("Z"))
    read = F.when(text.rlike(PLAIN), in_utc)  # null where the text is of that form and no time
    unclear = F.when(text.rlike(YEAR), F.concat(text, F.lit(NO_ZONE))).otherwise(text)
    return F.when(text.rlike(ZONED), text).otherwise(F.coalesce(read, unclear))
