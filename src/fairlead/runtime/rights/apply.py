"""Creates what the users of a policy need and may not create: tables, the streams of their topics, merged streams.

Takes: a log, opened by a user that manages; a policy. Gives: the names of the streams. Never: removes or changes anything.
"""

from __future__ import annotations

from fairlead.runtime.live.merged_streams import provide
from fairlead.runtime.live.subscriber.snapshots import STORE
from fairlead.runtime.rights.policy import Policy
from fairlead.runtime.rights.subjects import TABLES, topic_sets
from fairlead.transport.log.protocol import Log


async def apply(log: Log, policy: Policy) -> list[str]:
    """Doing it again changes nothing. Raises LogError."""
    for table in TABLES:
        await log.keys(table)
    await log.objects(STORE)
    topics = {(each.topic,) for user in policy.users.values() for each in (*user.publish, *user.emit, *user.subscribe)}
    sets = topics | {each for user in policy.users.values() for each in topic_sets(user)}
    made = [(await log.open_topics(each)).name for each in sorted(sets, key=lambda each: (len(each), each))]
    await provide(log, sets)
    return made
