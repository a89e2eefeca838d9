"""The publications of a run, as a history (testing/history/): a confirmed event that the log lost is found, also if a restarted
publisher has sent it again.

An event is sent with the time of the clock, so what is sent again has another time. Type, number and time are its token.

Takes: a copy of the log, the records of publishers. Gives: a history without subscribers. Never: looks at deliveries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue
from fairlead.testing.history.publishing import publishing_problems
from fairlead.testing.history.values import Confirmed, History, LifeBegun, NotAccepted, PublisherHistory, Sent
from fairlead.testing.live.actors.records import Line
from fairlead.testing.live.verdict.log_copy import Copy, logged_events

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Steps = list[LifeBegun | Sent | NotAccepted | Confirmed]


def publications(copy: Copy, catalogue: Catalogue, records: Mapping[str, Sequence[Line]]) -> list[str]:
    """The problems, in words. `records`: by source."""
    return list(publishing_problems(publication_history(copy, catalogue, records)))


def publication_history(copy: Copy, catalogue: Catalogue, records: Mapping[str, Sequence[Line]]) -> History:
    known = {each.name: each for each in catalogue}

    def token_of(event: Event) -> str | None:
        sent = "x" in event.schema.index and event.source in records
        return _token(event.source or "", event.type, event.raw("x"), event.time or 0) if sent else None

    topics = {topic: logged_events(blocks, known, token_of) for topic, blocks in copy.topics.items()}
    publishers = [
        PublisherHistory(f"{source}/{name}", _steps(source, name, catalogue[name].topic, lines), source)
        for source, lines in records.items()
        for name in sorted({each["type"] for each in lines if "sent" in each})
    ]
    return History(topics, {}, {}, publishers, ())


def _steps(source: str, name: str, topic: str, lines: Sequence[Line]) -> Steps:
    """Of one type: a publisher sends the events of a type one after the other, and its types side by side."""
    steps: Steps = []
    life: dict[str, int] = {}
    for line in lines:
        if "begun" in line:
            steps.append(LifeBegun())
            life = {}
        elif line.get("type") == name and "sent" in line:
            time = (datetime.fromisoformat(line["time"]) - EPOCH) // timedelta(microseconds=1)
            token = _token(source, name, line["sent"], time)
            steps.append(Sent(token, topic))
            life[token] = line["sent"]
        elif line.get("type") == name and "stored" in line:
            steps.append(Confirmed(tuple(token for token, x in life.items() if x < line["stored"])))
    return steps


def _token(source: str, name: str, x: int, time: int) -> str:
    return f"{source}/{name} {x} of {time}"
