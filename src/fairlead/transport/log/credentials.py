"""Credentials for a server: user and password, token, key, certificates; from arguments or from the environment.

Takes: the arguments of `connect`. Gives: credentials, completed by FAIRLEAD_USER, FAIRLEAD_PASSWORD, FAIRLEAD_TOKEN,
FAIRLEAD_NKEY (a file), FAIRLEAD_CA, FAIRLEAD_CERTIFICATE, FAIRLEAD_KEY, FAIRLEAD_SIGNING_KEYS. Never: prints a secret.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError

VARIABLES: Mapping[str, str] = {
    "user": "FAIRLEAD_USER",
    "password": "FAIRLEAD_PASSWORD",
    "token": "FAIRLEAD_TOKEN",
    "nkey": "FAIRLEAD_NKEY",
    "ca": "FAIRLEAD_CA",
    "certificate": "FAIRLEAD_CERTIFICATE",
    "key": "FAIRLEAD_KEY",
    "signing_keys": "FAIRLEAD_SIGNING_KEYS",
}


@dataclass(frozen=True)
class Credentials:
    """`nkey`, `ca`, `certificate`, `key` and `signing_keys` (signed_log.py) are files."""

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    nkey: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    signing_keys: str | None = None

    def with_environment(self) -> Credentials:
        """Missing values are taken from the environment, unless credentials of another kind were passed."""
        given = {each.name for each in fields(self) if getattr(self, each.name) is not None}
        known = bool(given & {"user", "token", "nkey"})
        found: dict[str, str] = {}
        for name, variable in VARIABLES.items():
            if name not in given and os.environ.get(variable) and not (known and name in ("user", "password", "token", "nkey")):
                found[name] = os.environ[variable]
        return replace(self, **found) if found else self

    @property
    def encrypted(self) -> bool:
        return bool(self.ca or self.certificate)

    @property
    def owner(self) -> str | None:
        """The word for this user in subjects that a server can reserve for it: its name, or its public key."""
        if self.nkey is not None:
            _present(self.nkey, "nkey")
            import nkeys  # type: ignore[import-untyped]

            try:
                public: bytes = nkeys.from_seed(Path(self.nkey).read_bytes().strip()).public_key
                return public.decode()
            except Exception:  # of its own, for each way in which a seed can be wrong; connecting reports it
                return None
        plain = self.user is not None and self.user.isascii() and self.user.replace("-", "").replace("_", "").isalnum()
        return self.user if plain else None

    @property
    def inbox(self) -> str | None:
        """The beginning of the client's inboxes, by which a server can keep others from listening there."""
        owner = self.owner
        return None if owner is None else f"_INBOX.{owner}"

    def credentials(self) -> dict[str, Any]:
        if self.nkey is not None:
            _present(self.nkey, "nkey")
        return {"user": self.user, "password": self.password, "token": self.token, "nkeys_seed": self.nkey}

    def context(self) -> ssl.SSLContext:
        if self.ca is not None:
            _present(self.ca, "ca")
        try:
            made = ssl.create_default_context(cafile=self.ca)
            if self.certificate is not None:
                _present(self.certificate, "certificate")
                made.load_cert_chain(self.certificate, self.key)
        except (ssl.SSLError, OSError) as error:
            raise UsageError("A241", f"the certificates are invalid: {error}", "pass PEM files: ca, certificate, key") from None
        return made


def _present(path: str, what: str) -> None:
    if not Path(path).is_file():
        raise UsageError("A241", f"{what}: the file {path!r} does not exist", "pass the path of a PEM file")
