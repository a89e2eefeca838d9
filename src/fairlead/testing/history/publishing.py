"""What must hold of the log, whatever failed. Each check yields problems, in words.

    kept       every confirmed event is in the log, under the token with which it was confirmed
    once       no event is in its topic twice, and none that nobody sent
    ordered    the events of a publisher are in the order in which it sent them, over all its processes, and without holes: if
               an event is stored, so are those that its process sent to the topic before and that were accepted
    numbered   the events of a publisher in a topic have the sequences 0, 1, 2, …
    merged     a merged stream has every event of its topics once, those of each topic in its order

Takes: a history. Gives: problems. Never: stops at the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fairlead.testing.history.values import Confirmed, History, LifeBegun, LoggedEvent, NotAccepted, PublisherHistory, Sent


def publishing_problems(history: History) -> Iterator[str]:
    places = {
        each.token: (topic, number)
        for topic, events in history.topics.items()
        for number, each in enumerate(events)
        if each.token is not None
    }
    yield from _once(history)
    for each in history.publishers:
        yield from _kept(each, places)
        yield from _ordered(each, places)
    yield from _numbered(history)
    yield from _merged(history)


def _once(history: History) -> Iterator[str]:
    sent = {step.token: step.topic for each in history.publishers for step in each.steps if isinstance(step, Sent)}
    for topic, events in history.topics.items():
        counts = Counter(each.token for each in events if each.token is not None)
        for token, count in counts.items():
            if count > 1:
                yield f"{token} is {count} times in {topic}"
            if sent.get(token) != topic:
                yield f"{token} is in {topic}, and nobody sent it there"


Places = dict[str, tuple[str, int]]


def _kept(publisher: PublisherHistory, places: Places) -> Iterator[str]:
    for token in dict.fromkeys(token for step in publisher.steps if isinstance(step, Confirmed) for token in step.tokens):
        if token not in places:
            yield f"{token} of {publisher.name} was confirmed, and the log does not have it"


def _ordered(publisher: PublisherHistory, places: Places) -> Iterator[str]:
    last: dict[str, tuple[int, str]] = {}
    for life in _lives(publisher):
        refused = {step.token for step in life if isinstance(step, NotAccepted)}
        missing: dict[str, str] = {}
        for step in life:
            if not isinstance(step, Sent) or step.token in refused:
                continue
            if step.token not in places:
                missing.setdefault(step.topic, step.token)
                continue
            if step.topic in missing:
                yield f"{step.token} of {publisher.name} is stored, and {missing[step.topic]} before it is not"
            _, place = places[step.token]
            before = last.get(step.topic)
            if before is not None and place < before[0]:
                yield f"{step.token} of {publisher.name} is stored before {before[1]}, which was sent before it"
            last[step.topic] = place, step.token


def _numbered(history: History) -> Iterator[str]:
    for source in dict.fromkeys(each.source or each.name for each in history.publishers):
        for topic, events in history.topics.items():
            numbers = [each.sequence for each in events if each.source == source]
            wrong = next((at for at, number in enumerate(numbers) if number != at), None)
            if wrong is not None:
                yield f"event {wrong} of {source} in {topic} has the sequence {numbers[wrong]}"


def _lives(publisher: PublisherHistory) -> list[list[LifeBegun | Sent | NotAccepted | Confirmed]]:
    found: list[list[LifeBegun | Sent | NotAccepted | Confirmed]] = [[]]
    for step in publisher.steps:
        if isinstance(step, LifeBegun):
            found.append([])
        found[-1].append(step)
    return found


def _merged(history: History) -> Iterator[str]:
    for name, topics in history.merged.items():
        counts = Counter(map(_name, history.streams[name]))
        for topic in topics:
            wanted = list(map(_name, history.topics[topic]))
            mine = set(wanted)
            if [_name(each) for each in history.streams[name] if _name(each) in mine] != wanted:
                yield f"the merged stream of {', '.join(topics)} has {topic} in another order, not all of it, or more"
            counts.subtract(wanted)
        if any(counts.values()):
            yield f"the merged stream of {', '.join(topics)} has events that none of its topics has, or some twice"


def _name(event: LoggedEvent) -> tuple[str, str, str, int | None, str | None]:
    return event.topic, event.type, event.source, event.sequence, event.token
