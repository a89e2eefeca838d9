"""What a server lets a user do, compared with the policy: by asking, without changing anything.

Every probe is a request that the server refuses for another reason if the user is allowed to make it: an append that names a
stream that does not exist, a call without a valid body. So what is answered is allowed, and what is not is refused.

Takes: a url, credentials, a policy and the name of the user. Gives: a line for every probe. Never: stores, reads an event, or
deletes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fairlead.errors import UsageError
from fairlead.runtime.live.registry import TABLE as TYPES
from fairlead.runtime.live.subscriber.record import TABLE as RECORDS
from fairlead.runtime.numbered import source_name
from fairlead.runtime.rights.policy import Policy, PolicyUser
from fairlead.runtime.rights.server_config import account_of
from fairlead.transport.log.blocks.block_filter import UNKNOWN
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.names import subject, topic_stream

REACHES = "reaches the tables and streams"
"""A server that reads its configuration anew connects a new account with that of the streams only when it reads it once more
(nats-server 2.15)."""
NOBODY = f"e-{'0' * 24}-0"
"""A source of derived events that no subscription has."""


class RightsProbe(NamedTuple):
    what: str
    subject: str
    expected: bool


class ProbeResult(NamedTuple):
    what: str
    expected: bool
    found: bool


def probes(policy: Policy, user: PolicyUser) -> Iterator[RightsProbe]:
    """Everything that somebody of the policy may do."""
    every = [each for one in policy.users.values() for each in (*one.publish, *one.subscribe, *one.emit)]
    wide, grants = user.manage or user.gateway, sorted({(each.topic, each.type or "") for each in every})
    mine = next((source_name(each) for each in user.sources if not each.endswith("*")), "none")
    for topic, type in ((topic, type) for topic, type in grants if type):
        may = wide or user.may_publish(topic, type)
        yield RightsProbe(f"publish {topic}.{type} as {mine}", subject(topic, type, mine, UNKNOWN), may)
        yield RightsProbe(f"publish {topic}.{type} as a stranger", subject(topic, type, "fl-stranger", UNKNOWN), wide)
        derived = wide or user.may_emit(topic, type)
        yield RightsProbe(f"emit {topic}.{type}", subject(topic, type, NOBODY, UNKNOWN), derived)
    for topic in sorted({topic for topic, _ in grants}):
        stream = topic_stream(topic)
        reads = wide or any(each.topic == topic and each.type is None for each in user.subscribe)
        whole = wide or any(each.topic == topic and each.type is None for each in user.publish)
        yield RightsProbe(f"publish all types of {topic}", subject(topic, "FlProbe", mine, UNKNOWN), whole)
        yield RightsProbe(f"read {topic}", f"$JS.API.DIRECT.GET.{stream}", reads)
        yield RightsProbe(f"make consumers of {topic}", f"$JS.API.CONSUMER.CREATE.{stream}", wide)
        yield RightsProbe(f"read single blocks of {topic}", f"$JS.API.STREAM.MSG.GET.{stream}", reads)
        # Deletion and purge are not probed: a server that allows them may ignore what is wrong with a request.
        yield RightsProbe(f"change the stream of {topic}", f"$JS.API.STREAM.UPDATE.{stream}", user.manage)
    for name in sorted({each for one in policy.users.values() for each in one.names if not each.endswith("*")}):
        owns = wide or (name in user.names and any(each.type is None for each in user.subscribe))
        yield RightsProbe(f"write the subscriber {name}", f"$KV.{RECORDS}.{name}", owns)
    yield RightsProbe("declare types", f"$KV.{TYPES}.FlProbe", wide or user.declare)
    yield RightsProbe("create streams", "$JS.API.STREAM.CREATE.FL_PROBE", wide)


async def check(url: str, access: Credentials, policy: Policy, name: str) -> list[ProbeResult]:
    """Raises UsageError, LogError."""
    user = policy.users.get(name)
    if user is None:
        raise UsageError("A424", f"the policy has no user {name!r}", f"use one of {', '.join(policy.users)}")

    from fairlead.transport.log.jetstream.permissions import answered

    asked = list(probes(policy, user))
    found = await answered(url, access, [each.subject for each in asked])
    own = ProbeResult(f"is in the account {account_of(user)}", True, found.account == account_of(user))
    there = ProbeResult(REACHES, True, found.reaches)
    return [own, there, *(ProbeResult(each.what, each.expected, may) for each, may in zip(asked, found.subjects, strict=True))]
