"""A command that takes a WHEN, and recognises one that the shell has taken apart."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import typer
from typer.core import TyperCommand


class WhenCommand(TyperCommand):
    """Says of more arguments than it has that WHEN is to be quoted: `0 9 * * *` comes as five, and as file names."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # Typer passes no other
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            ctx.fail("WHEN is one argument: quote it, as in '0 9 * * *'")
        return rest


def class_for(command: Callable[..., object]) -> type[TyperCommand]:
    """What Typer is to make of a command."""
    return WhenCommand if "when" in inspect.signature(command).parameters else TyperCommand
