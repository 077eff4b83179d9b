"""Modules that need a package which only an extra installs."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tickler.distribution import install_command
from tickler.errors import InvalidInput

EXTRAS = {"asyncpg": "postgres", "botocore": "dynamodb", "aiohttp": "dynamodb", "rich": "cli"}


def needing_extra(module: str, what: str) -> ModuleType:
    """Import one of our modules. If a third-party package is missing, `InvalidInput` names the extra to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise InvalidInput(f"{what} needs the package {error.name}: install it with `{install_command(extra)}`") from None
