"""A policy as the configuration of a NATS server: accounts, and what each may ask of the one that has the streams.

Permissions within one account keep nobody out: a server sends an answer to any subject that a client names as the place of the
reply, its own API included. So every user has an account of its own, in which there is nothing. What the user may ask is
imported there, as services of the account `FL_LOG`. The server forwards such a request with a reply subject that it makes
itself, and the answer comes back into the user's account only, where it reaches nothing but what the user may ask anyway. So
imports say what is possible; the permissions beside them are for the client, which gets an error at once.

    FL_LOG          streams and tables; users that manage, gateways; exports each request to the users that may make it
    FL_USER_name    one user; imports its requests. `$JS.API.INFO` has no responder: if the name is taken, the server does not
                    offer the user a JetStream of its own, which would answer the same requests

Takes: a policy. Gives: text for the server's configuration. Never: writes a password in clear.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from fairlead.errors import UsageError
from fairlead.runtime.rights.policy import VARIABLE, Policy, PolicyUser
from fairlead.runtime.rights.subjects import Allowed, allowed, inbox_of, is_inside, notes_of, topics_of

LOG, OWN = "FL_LOG", "FL_USER_"
NOWHERE, TAKEN = "fl.none", "$JS.API.INFO"
WHO = "$SYS.REQ.USER.INFO"
"""By which the server reports a user its own account and permissions (`fairlead rights check`)."""
HEAD = """\
# Made by `fairlead rights` of a policy. Include it in the server's configuration, at its top level:
#   include "rights.conf"
# Variables ($NAME) are read from the server's environment.
accounts {
"""


def account_of(user: PolicyUser) -> str:
    return LOG if is_inside(user) else f"{OWN}{user.name}"


def server_config(policy: Policy) -> str:
    """Users without a password and a key have no access to the server: they use the gateway. Raises UsageError if all do."""
    users = [each for each in policy.users.values() if each.password or each.nkey]
    if not users:
        problem = "no user of the policy has a password or an nkey: such a server lets everybody in"
        raise UsageError("A421", problem, "give one to the gateway and to a user that manages")
    topics = topics_of(policy)
    inside = "".join(_user(each, allowed(each, topics)) for each in users if is_inside(each))
    outside = {each: allowed(each, topics) for each in users if not is_inside(each)}
    log = f"  {LOG} {{\n    jetstream: enabled\n    users = [\n{inside}    ]\n    exports = [\n{_exports(outside)}    ]\n  }}\n"
    return HEAD + log + "".join(_account(user, rights) for user, rights in outside.items()) + "}\n"


def _exports(outside: dict[PolicyUser, Allowed]) -> str:
    services: dict[str, list[str]] = {NOWHERE: [account_of(each) for each in outside]}
    streams: dict[str, list[str]] = {}
    for user, rights in outside.items():
        for each in rights.requests or ():
            services.setdefault(each, []).append(account_of(user))
        for each in rights.announcements:
            streams.setdefault(each, []).append(account_of(user))
    streamed = {each for rights in outside.values() for each in rights.streamed}
    lines = []
    for subject, accounts in services.items():
        # An answer of several messages has no end that the server knows: it forgets the way back after this time.
        more = ', response_type: stream, threshold: "10s"' if subject in streamed else ""
        lines.append(f"      {{ service: {json.dumps(subject)}{more}, accounts: {json.dumps(accounts)} }}\n")
    lines += [f"      {{ stream: {json.dumps(each)}, accounts: {json.dumps(told)} }}\n" for each, told in streams.items()]
    return "".join(lines) if outside else ""


def _account(user: PolicyUser, rights: Allowed) -> str:
    lines = [f"      {{ service: {{ account: {LOG}, subject: {json.dumps(NOWHERE)} }}, to: {json.dumps(TAKEN)} }}\n"]
    for kind, subjects in (("service", rights.requests or ()), ("stream", rights.announcements)):
        lines += [f"      {{ {kind}: {{ account: {LOG}, subject: {json.dumps(each)} }} }}\n" for each in subjects]
    imports = f"    imports = [\n{''.join(lines)}    ]\n"
    return f"  {account_of(user)} {{\n    users = [\n{_user(user, rights)}    ]\n{imports}  }}\n"


def _user(user: PolicyUser, rights: Allowed) -> str:
    lines = [f"      # {each}\n" for each in notes_of(user)]
    if user.nkey is not None:
        who = f"nkey: {user.nkey}"
    else:
        password = user.password or ""
        who = f"user: {json.dumps(user.name)}, password: {password if VARIABLE.fullmatch(password) else json.dumps(password)}"
    return "".join(lines) + f"      {{ {who}{_permissions(user, rights)} }}\n"


def _permissions(user: PolicyUser, rights: Allowed) -> str:
    if rights.requests is None:
        return ""
    listened = (f"{inbox_of(user)}.>", *rights.announcements)
    publish = f"          publish: {_listed((*rights.requests, WHO))}\n"
    return f", permissions: {{\n{publish}          subscribe: {_listed(listened)}\n        }}"


def _listed(subjects: Sequence[str]) -> str:
    return "[" + "".join(f"\n            {json.dumps(each)}" for each in subjects) + " ]"
