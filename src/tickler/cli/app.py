"""Gathers the commands and runs the one that was asked for."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from typing import Annotated

import typer
from rich.console import Console

import tickler
from tickler import cli
from tickler.cli.options import FLAG
from tickler.errors import TicklerError


def run() -> None:
    """Run what the arguments say. An error of Tickler's is one line on stderr and exit code 1."""
    try:
        _gather()()
    except TicklerError as error:
        Console(stderr=True).out(f"tickler: {error}", highlight=False)
        sys.exit(1)


def _gather() -> typer.Typer:
    """A module here that has a `command` is one, under its own name."""
    # A traceback with local variables would show the password in a store's URL.
    app = typer.Typer(callback=_root, no_args_is_help=True, pretty_exceptions_show_locals=False)
    for found in pkgutil.iter_modules(cli.__path__):
        command = getattr(import_module(f"{cli.__name__}.{found.name}"), "command", None)
        if command is not None:
            app.command(found.name)(command)
    return app


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
