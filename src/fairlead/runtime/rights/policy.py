"""The policy: users, and what each may publish, read and own. One file serves the NATS server and the gateway.

    users:
      shop:
        password: $SHOP_PASSWORD        # of the environment of the server; or the bcrypt hash of a password
        publish: [orders, stock.Delivery]
        sources: [shop-1, shop-2]
      desk:
        role: trader
        nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4
    roles:
      trader:
        subscribe: [orders]
        names: [desk-1, desk-2]

`orders` is a topic with all its types, `stock.Delivery` one type of a topic.

Takes: the text of a policy. Gives: `Policy`. Never: does I/O; accepts a word that it does not know; shows a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.model.events.types import HEARTBEAT
from fairlead.transport.admission.problems import did_you_mean
from fairlead.transport.files.documents import Malformed, yaml_value

USER = re.compile(r"[A-Za-z0-9_-]{1,64}")
NKEY = re.compile(r"U[A-Z2-7]{55}")
BCRYPT = re.compile(r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}")
VARIABLE = re.compile(r"\$[A-Z_][A-Z0-9_]*")
"""In capitals: a server looks for others in its configuration first, where `$user` is the name of the user."""
TOKEN = re.compile(r"sha256:[0-9a-f]{64}")
SOURCES = re.compile(r"[^\s*]{0,256}\*?")
NAMES = re.compile(r"[A-Za-z0-9_-]{1,64}|[A-Za-z0-9_-]{0,64}\*")
GRANT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)?")
LISTS = ("publish", "subscribe", "emit", "sources", "names")
FLAGS = ("declare", "heartbeat", "manage", "gateway")
SECRETS = ("password", "nkey", "token")


class Grant(NamedTuple):
    """A topic with all its types, or one type of it."""

    topic: str
    type: str | None = None

    def __str__(self) -> str:
        return self.topic if self.type is None else f"{self.topic}.{self.type}"

    def covers(self, topic: str, type: str) -> bool:
        return topic == self.topic and self.type in (None, type)


@dataclass(frozen=True)
class PolicyUser:
    """`sources` and `names`: the sources and durable subscribers that it owns; a name with `*` at its end is a prefix, for the
    gateway only. `emit`: the types that its subscriptions may store. `rate`: requests to the gateway per second."""

    name: str
    password: str | None = field(default=None, repr=False)
    nkey: str | None = None
    token: str | None = field(default=None, repr=False)
    publish: tuple[Grant, ...] = ()
    subscribe: tuple[Grant, ...] = ()
    emit: tuple[Grant, ...] = ()
    sources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    declare: bool = False
    heartbeat: bool = False
    manage: bool = False
    gateway: bool = False
    rate: float | None = None

    def may_publish(self, topic: str, type: str) -> bool:
        """Heartbeats tell the time to every topic, so they are a right of their own."""
        return self.manage or (self.heartbeat if type == HEARTBEAT.name else _covered(self.publish, topic, type))

    def may_read(self, topic: str, type: str) -> bool:
        return self.manage or _covered(self.subscribe, topic, type)

    def may_emit(self, topic: str, type: str) -> bool:
        return self.manage or _covered(self.emit, topic, type)

    def owns_source(self, name: str) -> bool:
        return self.manage or _owned(self.sources, name)

    def owns_name(self, name: str) -> bool:
        return self.manage or _owned(self.names, name)


@dataclass(frozen=True)
class Policy:
    users: Mapping[str, PolicyUser]


def policy_of(text: str, file: str = "policy") -> Policy:
    """Raises UsageError."""
    try:
        told = yaml_value(text)
    except Malformed as error:
        raise UsageError("A420", f"the policy is not YAML: {error}", "correct it", error.at(file)) from None
    if not isinstance(told, dict) or not isinstance(told.get("users"), dict) or told.keys() - {"users", "roles"}:
        raise UsageError("A420", "expected `users`, and optionally `roles`", "see docs/rights.md for an example", file)
    roles = {str(name): _fields(told, f"{file}: role {name}") for name, told in _mapping(told.get("roles"), file).items()}
    found = {}
    for name, mine in told["users"].items():
        place = f"{file}: user {name}"
        if not isinstance(name, str) or not USER.fullmatch(name):
            raise UsageError("A421", f"the name of a user is {name!r}", "use up to 64 letters, digits, - and _", place)
        found[name] = _user(name, _mapping(mine, place), roles, place)
    for secret in ("nkey", "token"):
        _require_unlike([(getattr(each, secret), each.name) for each in found.values()], secret, file)
    return Policy(found)


def _mapping(value: Any, place: str) -> dict[Any, Any]:
    if value is not None and not isinstance(value, dict):
        raise UsageError("A420", f"expected names with values, got {value!r}", "write `word: value` lines", place)
    return value or {}


def _user(name: str, told: dict[Any, Any], roles: Mapping[str, dict[str, Any]], place: str) -> PolicyUser:
    named = told.pop("role", [])
    named = named if isinstance(named, list) else [named]
    for each in named:
        if not isinstance(each, str) or each not in roles:
            raise UsageError(
                "A421", f"there is no role {each!r}", f"define it below `roles`; known: {', '.join(roles) or 'none'}", place
            )
    secrets = {each: told.pop(each) for each in SECRETS if each in told}
    fields = _fields(told, place)
    for role in (roles[each] for each in named):
        for word, value in role.items():
            fields[word] = (*value, *fields.get(word, ())) if word in LISTS else fields.get(word) or value
    fields.setdefault("sources", (name,))
    fields.setdefault("names", (name,))
    for word in LISTS:
        fields[word] = tuple(dict.fromkeys(fields.get(word, ())))
    return PolicyUser(name, **_secrets(secrets, place), **fields)


def _fields(told: Any, place: str) -> dict[str, Any]:
    """What a user or a role may do, checked."""
    found: dict[str, Any] = {}
    for word, value in _mapping(told, place).items():
        if word in FLAGS and isinstance(value, bool):
            found[word] = value
        elif word == "rate" and isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1e6:
            found[word] = float(value)
        elif word in LISTS and isinstance(value, list) and all(isinstance(each, str) for each in value):
            found[word] = tuple(READ[word](each, f"{place}, {word}") for each in value)
        elif word in LISTS or word in FLAGS or word == "rate":
            wanted = "a list of names" if word in LISTS else "true or false" if word in FLAGS else "a number above 0"
            raise UsageError("A421", f"{word} is {value!r}", f"write {wanted}", place)
        elif word in SECRETS or word == "role":
            raise UsageError("A421", f"a role has no {word}", "give it to the users", place)
        else:
            known = (*LISTS, *FLAGS, *SECRETS, "rate", "role")
            raise UsageError(
                "A421", f"a policy has no word {word!r}", did_you_mean(str(word), known) or ", ".join(known), place
            )
    return found


def _grant(text: str, place: str) -> Grant:
    if not GRANT.fullmatch(text):
        raise UsageError("A421", f"{text!r} is not a topic, nor a type of one", "write orders, or orders.Order", place)
    topic, _, type = text.partition(".")
    return Grant(topic, type or None)


def _source(text: str, place: str) -> str:
    if not text or not SOURCES.fullmatch(text):
        raise UsageError("A421", f"{text!r} is not the name of a source", "use a name without spaces", place)
    return text


def _name(text: str, place: str) -> str:
    """It becomes a word of a subject, in which other characters would name other subscribers."""
    if not NAMES.fullmatch(text):
        fix = "use up to 64 letters, digits, - and _, or a prefix of them with * at its end"
        raise UsageError("A421", f"{text!r} is not the name of a subscriber", fix, place)
    return text


READ = {"publish": _grant, "subscribe": _grant, "emit": _grant, "sources": _source, "names": _name}


def _secrets(told: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Never quotes a value: it may be a password that somebody wrote in clear."""
    forms = {"password": (BCRYPT, VARIABLE), "nkey": (NKEY,), "token": (TOKEN,)}
    fixes = {
        "password": "write $NAME of the server's environment, in capitals, or a bcrypt hash (`nats server passwd`)",
        "nkey": "write the public key, U…: the seed stays with the user",
        "token": "write sha256: and the hash of the token: `fairlead rights token` makes both",
    }
    for word, value in told.items():
        if not isinstance(value, str) or not any(each.fullmatch(value) for each in forms[word]):
            raise UsageError("A422", f"{word} has another form than is allowed in a policy", fixes[word], place)
    return dict(told)


def _require_unlike(found: Iterable[tuple[str | None, str]], what: str, file: str) -> None:
    known: dict[str, str] = {}
    for value, user in found:
        if value is not None and known.setdefault(value, user) != user:
            raise UsageError("A422", f"{known[value]} and {user} have the same {what}", "give every user its own", file)


def _covered(grants: Iterable[Grant], topic: str, type: str) -> bool:
    return any(each.covers(topic, type) for each in grants)


def _owned(names: Iterable[str], name: str) -> bool:
    return any(name == each or (each.endswith("*") and name.startswith(each[:-1])) for each in names)
