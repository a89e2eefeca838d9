"""How the command line ends: an error in words and an exit code, never a traceback.

    0    fine                          2    wrong usage: an argument or option
    1    bad rules or data, a          3    compare: no difference, and one side has more
         difference, a failed test     130  interrupted (Ctrl-C)      141  the reader of the output went away
                                       143  terminated; 129 hung up

Takes: any exception of a command. Gives: the message on the standard error, the exit code. Never: hides a bug; other exceptions
than FairleadError are not caught.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from fairlead.cli.process.signals import is_complete
from fairlead.cli.process.standard_streams import OutputFailed, silence
from fairlead.errors import FairleadError, UsageError

BAD, WRONG_USAGE, HAS_MORE, INTERRUPTED, READER_GONE = 1, 2, 3, 130, 141


class Shell(click.Group):
    """A group of commands that ends as this module says, even if tests call it in-process."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # detects a broken pipe here, not at the interpreter's exit
        except FairleadError as error:
            show_error(error)
            ctx.exit(WRONG_USAGE if isinstance(error, UsageError) else BAD)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            silence()
            ctx.exit(READER_GONE)
        except FileNotFoundError:
            if _has_working_directory():
                raise
            problem = "the working directory has been removed"
            show_error(UsageError("A294", problem, "change to another directory", "."))
            ctx.exit(WRONG_USAGE)
        return result

    def main(self, *arguments: Any, **more: Any) -> Any:
        """Includes `--help` and `--version`, which click prints before it invokes anything."""
        try:
            return super().main(*arguments, **more)
        except OutputFailed as error:
            from fairlead.transport.admission.problems import unwritable

            silence()
            failed = unwritable("the standard output", error, "standard output")
            if is_complete():
                failed.fix = "do not run it again: all files are written, and only the summary is missing"
            show_error(failed)
            sys.exit(BAD)


def _has_working_directory() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:
        return False


def show_error(error: FairleadError) -> None:
    """The error on the standard error, as its str; in colour on a terminal."""
    click.echo(coloured(str(error), error.code) if in_colour() else str(error), err=True)


def coloured(text: str, code: str, colour: str = "red") -> str:
    """The code and the carets in the colour, the fix in green."""
    lines = []
    for line in text.splitlines():
        if line.startswith(code):
            line = click.style(code, fg=colour, bold=True) + click.style(line.removeprefix(code), bold=True)
        elif line.strip() and not line.strip().strip("^"):
            line = click.style(line, fg=colour, bold=True)
        elif line.startswith("  fix: "):
            line = click.style("  fix: ", fg="green", bold=True) + line.removeprefix("  fix: ")
        lines.append(line)
    return "\n".join(lines)


def in_colour() -> bool:
    return sys.stderr.isatty() and "NO_COLOR" not in os.environ
