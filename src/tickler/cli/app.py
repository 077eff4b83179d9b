"""Gathers the commands and runs the one that was asked for."""

from __future__ import annotations

import errno
import os
import pkgutil
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer
from rich.console import Console

import tickler
from tickler.cli import commands
from tickler.cli.options import FLAG
from tickler.cli.when_command import class_for
from tickler.errors import FireNotFound, ScheduleNotFound, TicklerError

REFUSED = 1
NOT_FOUND = 3
UNREAD = 141  # as a shell has it for who writes where nobody reads any more
NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)  # of stdout: for what else is written, others answer


def run(arguments: Sequence[str] | None = None) -> None:
    """Run what the arguments say. An error of Tickler's is one line on stderr and exit code 1; 3 when something is not there."""
    try:
        gathered()(arguments)
    except TicklerError as error:
        _complain(_told(error))
        sys.exit(NOT_FOUND if isinstance(error, ScheduleNotFound | FireNotFound) else REFUSED)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # Rich and Click leave so, with 1, and quietly
            sys.exit(UNREAD)
        raise
    except OSError as error:
        if error.errno not in NO_ROOM or error.filename is not None:
            raise
        _drop_what_is_left()
        _complain(f"stdout: {(error.strerror or str(error)).lower()}: the answer is not whole")
        sys.exit(REFUSED)


def gathered() -> typer.Typer:
    """A module of `commands/` that has a `command`, or an `app` with commands of its own, is one under its name.

    What Python keeps for itself has an underscore more: `import_.py` is `tickler import`.
    """
    # A traceback with local variables would show the password in a store's URL.
    gathering = typer.Typer(callback=_root, no_args_is_help=True, pretty_exceptions_show_locals=False)
    for found in pkgutil.iter_modules(commands.__path__):
        module, name = import_module(f"{commands.__name__}.{found.name}"), found.name.removesuffix("_")
        command, app = getattr(module, "command", None), getattr(module, "app", None)
        if command is not None:
            gathering.command(name, cls=class_for(command))(command)
        elif isinstance(app, typer.Typer):
            gathering.add_typer(app, name=name)
    return gathering


def _complain(line: str) -> None:
    Console(stderr=True).out(f"tickler: {line}", highlight=False)


def _drop_what_is_left() -> None:
    """Of what stdout does not take: the interpreter would try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _told(error: TicklerError) -> str:
    """As it is said to who types commands."""
    if isinstance(error, ScheduleNotFound):
        return f"no schedule {error.owner}/{error.key}: see `tickler list --owner {shlex.quote(error.owner)}`"
    if isinstance(error, FireNotFound):
        return f"there is no dead fire {error.fire_id[:80]}: see `tickler fires --state dead`"
    return str(error)


def _show_version(wanted: bool) -> None:
    if wanted:
        Console().out(f"tickler {tickler.__version__}", highlight=False)
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, metavar=FLAG, help="Show the version.")
]


def _root(
    version: Version = False,
) -> None:
    """Which of my users' schedules are due right now?"""
