"""Runs the long-lived commands on uvloop where it is installed: it takes less time for each delivery and each request."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from typing import Any, TypeVar

from tickler.distribution import install_command
from tickler.errors import InvalidInput

VARIABLE = "TICKLER_UVLOOP"

T = TypeVar("T")


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=loop_factory(os.environ)) as runner:
        return runner.run(main())


def loop_factory(environ: Mapping[str, str]) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes an event loop; None for asyncio's own. `TICKLER_UVLOOP=0` chooses that, and `=1` requires uvloop."""
    wanted = environ.get(VARIABLE, "").strip()
    if wanted not in ("", "0", "1"):
        raise InvalidInput(f"{VARIABLE}: {wanted!r} is neither 0 nor 1: write 0 for asyncio's own event loop, or leave it out")
    if wanted == "0":
        return None
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError:
        if wanted:
            raise InvalidInput(f"{VARIABLE}: uvloop is not installed: {install_command('uvloop')}, or leave it out") from None
        return None
    return factory
