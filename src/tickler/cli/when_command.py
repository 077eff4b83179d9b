"""Commands with a WHEN argument: they recognise one that the shell has split into words."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import typer
from typer.core import TyperCommand


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


def command_class(command: Callable[..., object]) -> type[TyperCommand]:
    """Return the Typer class for a command function."""
    return WhenCommand if "when" in inspect.signature(command).parameters else TyperCommand
