"""A policy as the configuration of a NATS server: one user for each of the policy, with the subjects that it may use.

Takes: a policy. Gives: text for the server's configuration. Never: writes a password in clear.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from fairlead.runtime.rights.policy import VARIABLE, Policy, PolicyUser
from fairlead.runtime.rights.subjects import Allowed, allowed, notes_of

HEAD = """\
# Made by `fairlead rights` of a policy. Include it in the server's configuration:
#   include "rights.conf"
# Variables ($NAME) are read from the server's environment.
authorization {
  users = [
"""


def server_config(policy: Policy) -> str:
    """Users without a password and a key have no access to the server: they use the gateway."""
    users = [each for each in policy.users.values() if each.password or each.nkey]
    return HEAD + "".join(_user(each) for each in users) + "  ]\n}\n"


def _user(user: PolicyUser) -> str:
    lines = [f"    # {each}\n" for each in notes_of(user)]
    if user.nkey is not None:
        who = f"nkey: {user.nkey}"
    else:
        password = user.password or ""
        who = f"user: {json.dumps(user.name)}, password: {password if VARIABLE.fullmatch(password) else json.dumps(password)}"
    return "".join(lines) + f"    {{ {who}{_permissions(allowed(user))} }}\n"


def _permissions(rights: Allowed) -> str:
    if rights.publish is None:
        return ""
    denied = f", deny: {_listed(rights.deny)}" if rights.deny else ""
    publish = f"        publish: {{ allow: {_listed(rights.publish)}{denied} }}\n"
    return f", permissions: {{\n{publish}        subscribe: {_listed(rights.subscribe)}\n      }}"


def _listed(subjects: Sequence[str]) -> str:
    return "[" + "".join(f"\n          {json.dumps(each)}" for each in subjects) + " ]"
