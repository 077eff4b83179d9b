"""A command that takes a WHEN, and recognises one that the shell has split."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import typer
from typer.core import TyperCommand


class WhenCommand(TyperCommand):
    """Asks for quotes when there are too many arguments: unquoted, `0 9 * * *` arrives as five words, or as file names."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # Typer passes no other
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            is_option = any(each.name == "when" and each.param_type_name == "option" for each in self.params)
            how = "pass WHEN as one option, in quotes: --when" if is_option else "WHEN is one argument: quote it, as in"
            ctx.fail(f"{how} '0 9 * * *'")
        return rest


def class_for(command: Callable[..., object]) -> type[TyperCommand]:
    """What Typer is to make of a command."""
    return WhenCommand if "when" in inspect.signature(command).parameters else TyperCommand
