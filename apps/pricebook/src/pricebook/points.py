"""Points between the steps of long work, at which tests stop a process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

AtPoint = Callable[[str], Awaitable[None]]
"""Called with the name of a point, such as `change_set.staged`, after the step that it is named for."""


async def pass_on(_: str) -> None:
    """Go on."""
