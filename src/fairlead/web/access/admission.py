"""Who asks, and whether this gateway answers: its own names, web pages, bearer tokens.

    1. `Host` is an address, or a name of this gateway: a page whose name was pointed here is refused (DNS rebinding)
    2. a web page asks from here, or from an origin that is allowed; a browser says so by `Origin` and `Sec-Fetch-Site`
    3. the bearer token is one of the policy, or the operator's; without either, everybody is the operator

Takes: headers. Gives: the caller, as a user of the policy. Never: compares a secret in a time that depends on it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from fairlead.errors import UsageError
from fairlead.runtime.rights.policy import Policy, PolicyUser

OPERATOR = PolicyUser("operator", manage=True)
LOCAL = ("localhost",)
ELSEWHERE = ("cross-site", "same-site")


class Admission:
    """`hosts`: names of this gateway. `origins`: other pages that may ask. `token`: the operator's."""

    def __init__(self, hosts: tuple[str, ...], origins: tuple[str, ...], token: str | None, policy: Policy | None) -> None:
        self._hosts, self._origins = {each.lower() for each in (*hosts, *LOCAL)}, origins
        self._callers: list[tuple[bytes, PolicyUser]] = []
        if token is not None:
            self._callers.append((_hashed(token), OPERATOR))
        for user in policy.users.values() if policy is not None else ():
            if user.token is not None:
                self._callers.append((bytes.fromhex(user.token.removeprefix("sha256:")), user))
        self._open = token is None and policy is None

    def check_page(self, headers: Mapping[str, str]) -> None:
        """Raises UsageError."""
        host = headers.get("Host", "")
        if not self._is_ours(host):  # 1
            problem = f"this gateway is not known as {host!r}"
            raise UsageError(
                "A279", problem, "use its address, or name it: fairlead gateway --allow-host NAME", "header 'host'"
            )
        origin = headers.get("Origin")  # 2
        if origin in self._origins:
            return
        if origin is None and headers.get("Sec-Fetch-Site") not in ELSEWHERE:
            return
        if origin is None or _site_of(origin) != host:
            shown = origin or "another site"
            problem = f"web pages from {shown} are not allowed to use this gateway"
            raise UsageError("A273", problem, f"allow it: fairlead gateway --origin {shown}", "header 'origin'")

    def _is_ours(self, host: str) -> bool:
        name = host.lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if name in self._hosts:
            return True
        try:
            return bool(ip_address(name))
        except ValueError:
            return False

    def caller(self, headers: Mapping[str, str]) -> PolicyUser:
        """Raises UsageError."""
        if self._open:  # 3
            return OPERATOR
        kind, _, given = headers.get("Authorization", "").partition(" ")
        hashed, found = _hashed(given.strip()), None
        for known, user in self._callers:
            if hmac.compare_digest(hashed, known) and kind.lower() == "bearer":
                found = user
        if found is None:
            raise UsageError(
                "A272", "the bearer token is missing or wrong", "send Authorization: Bearer …", "header 'authorization'"
            )
        return found


def _site_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:  # brackets that are not an address
        return None


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
