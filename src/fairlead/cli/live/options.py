"""The address of the log and the credentials: the options that all commands on a log share.

Takes: options, completed by the environment. Gives: `LogAddress`, which opens a client. Never: starts a server: that is `up`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairlead.dataclass import dataclass

if TYPE_CHECKING:
    from fairlead.runtime.live.sync_client import SyncClient
    from fairlead.runtime.rights.policy import Policy

URL_VARIABLE = "FAIRLEAD_URL"
Command = TypeVar("Command", bound=Callable[..., Any])
CREDENTIALS = {
    "user": ("NAME", "The user name."),
    "password": ("TEXT", "The password. Prefer the environment variable: other users can see the arguments of a process."),
    "token": ("TEXT", "The token. Prefer the environment variable."),
    "nkey": ("FILE", "The file with the seed of an NKey."),
    "ca": ("FILE", "The certificate authority of the server (TLS, PEM)."),
    "certificate": ("FILE", "The client certificate (PEM)."),
    "key": ("FILE", "The key of the client certificate (PEM)."),
    "signing_keys": ("FILE", "The keys that sign the tables of the log, one per line (docs/rights.md)."),
}


@dataclass(frozen=True)
class LogAddress:
    """A log, as given by the options."""

    url: str | None
    credentials: Mapping[str, Any]

    def require(self) -> None:
        """Raises UsageError if no log is named."""
        from fairlead.errors import UsageError

        if not self.url:
            fix = f"--url nats://HOST:PORT, or set {URL_VARIABLE}; `fairlead up` starts a server"
            raise UsageError("A290", "no log server is named", fix)

    @contextmanager
    def opened(self, **more: Any) -> Iterator[SyncClient]:
        """Raises UsageError if no log is named, LogError if no server answers."""
        from fairlead.runtime.live.client import connect

        self.require()
        with connect(self.url, **self.credentials, **more).sync as fl:
            yield fl


def read_policy(path: str) -> Policy:
    """Raises UsageError."""
    from pathlib import Path

    from fairlead.errors import UsageError
    from fairlead.runtime.rights.policy import policy_of

    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("A423", f"the policy is not readable: {error}", "pass the path of a YAML file", path) from None
    return policy_of(text, path)


def log_options(command: Command) -> Command:
    """`--url` and the credentials, passed to the command as one `where`."""

    @wraps(command)
    def called(*args: Any, url: str | None, **options: Any) -> Any:
        credentials = {name: options.pop(name) for name in CREDENTIALS}
        return command(*args, where=LogAddress(url, credentials), **options)

    for name, (metavar, told) in reversed(CREDENTIALS.items()):
        option = f"--{name.replace('_', '-')}"
        called = click.option(option, metavar=metavar, help=f"{told} [env: FAIRLEAD_{name.upper()}]")(called)
    found: Command = click.option(
        "--url",
        metavar="URL",
        envvar=URL_VARIABLE,
        help=f"The server or cluster, as `fairlead up` prints it. [env: {URL_VARIABLE}]",
    )(called)  # type: ignore[assignment]
    return found
