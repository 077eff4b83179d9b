"""Opens the pricebook that the environment names, for the length of a command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from pricebook.access.caller import ROLES, Caller
from pricebook.app import Pricebook, Settings, open_pricebook
from tickler.web import ensure_key, make_private

T = TypeVar("T")

OPERATOR = Caller("command-line", frozenset(ROLES))
"""Who acts: whoever may run commands beside the store may do anything, and the audit says that it was a command."""


def read_settings(given: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of the environment and of what was given beside it. Makes the key of an SQLite file."""
    settings = Settings.from_environment({**os.environ, **(given or {})})
    ensure_key(os.environ, settings.store)
    make_private(settings.store)
    return settings


def run(work: Callable[[Pricebook], Awaitable[T]]) -> T:
    """Return what `work` returns of the open pricebook."""

    async def opened() -> T:
        async with open_pricebook(read_settings()) as book:
            return await work(book)

    return asyncio.run(opened())
