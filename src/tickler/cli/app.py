"""Builds the command line from `commands/`, and turns errors into exit codes."""

from __future__ import annotations

import errno
import inspect
import os
import pkgutil
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer
from rich.console import Console
from typer.core import TyperCommand

import tickler
from tickler.cli import commands
from tickler.cli.options import FLAG
from tickler.errors import FireNotFound, ScheduleNotFound, TicklerError

FAILED = 1
NOT_FOUND = 3
BROKEN_PIPE = 141  # what a shell reports for SIGPIPE
WRITE_ERRORS = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)


def run(arguments: Sequence[str] | None = None) -> None:
    """Run a command. A `TicklerError` becomes one line on stderr and exit code 1, or 3 if something was not found."""
    try:
        words = sys.argv[1:] if arguments is None else arguments
        build_app(words[0] if words else None)(arguments)
    except TicklerError as error:
        _print_error(_message(error))
        sys.exit(NOT_FOUND if isinstance(error, LookupError) else FAILED)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # Rich and Click exit with 1, without a message
            sys.exit(BROKEN_PIPE)
        raise
    except OSError as error:
        if error.errno not in WRITE_ERRORS or error.filename is not None:  # a named file is not stdout
            raise
        _discard_stdout()
        _print_error(f"stdout: {(error.strerror or str(error)).lower()}: the output is incomplete")
        sys.exit(FAILED)


class WhenCommand(TyperCommand):
    """Asks for quotes when there are too many arguments: unquoted, `0 9 * * *` becomes five words, or file names."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # Typer passes no other
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            is_option = any(each.name == "when" and each.param_type_name == "option" for each in self.params)
            how = "quote the value of --when: --when" if is_option else "quote WHEN:"
            ctx.fail(f"{how} '0 9 * * *'")
        return rest


def build_app(only: str | None = None) -> typer.Typer:
    """Add each module of `commands/` under its name: its `command`, or its `app` of subcommands.

    A trailing underscore is dropped: `import_.py` is `tickler import`. If `only` is the name of a command, the others are left
    out, since importing and building all of them takes longer than most commands.
    """
    # A traceback with local variables would show the password in a store's URL.
    root = typer.Typer(callback=_root, no_args_is_help=True, pretty_exceptions_show_locals=False)
    modules = {found.name.removesuffix("_"): found.name for found in pkgutil.iter_modules(commands.__path__)}
    for name in [only] if only in modules else modules:
        module = import_module(f"{commands.__name__}.{modules[name]}")
        command, app = getattr(module, "command", None), getattr(module, "app", None)
        if command is not None:
            short_help = f"{command.__doc__.partition('.')[0]}."  # the first sentence, in the list of commands
            kind = WhenCommand if "when" in inspect.signature(command).parameters else TyperCommand
            root.command(name, cls=kind, short_help=short_help)(command)
        elif isinstance(app, typer.Typer):
            root.add_typer(app, name=name)
    return root


def _print_error(line: str) -> None:
    Console(stderr=True).out(f"tickler: {line}", highlight=False)


def _discard_stdout() -> None:
    """Drop buffered output that cannot be written: the interpreter would try again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


def _message(error: TicklerError) -> str:
    """Return the error's message, with the command that helps."""
    if isinstance(error, ScheduleNotFound):
        return f"no schedule {error.owner}/{error.key}: see `tickler list --owner {shlex.quote(error.owner)}`"
    if isinstance(error, FireNotFound):
        return f"no dead fire {error.fire_id[:80]}: see `tickler fires --state dead`"
    return str(error)


def _show_version(wanted: bool) -> None:
    if wanted:
        Console().out(f"tickler {tickler.__version__}", highlight=False)
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, metavar=FLAG, help="Show the version and exit.")
]


def _root(version: Version = False) -> None:
    """Run your users' schedules on SQLite, PostgreSQL or DynamoDB."""
