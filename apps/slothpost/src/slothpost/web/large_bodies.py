"""Holds only so many large bodies at once, of whoever sends them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tickler.web import Refused

MAX_HELD = 8


class LargeBodies:
    """Counts the large bodies of one process that are being read or worked on."""

    def __init__(self) -> None:
        self._held = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Count one while the block runs; 503 if there are too many."""
        if self._held >= MAX_HELD:
            raise Refused(503, "too many large bodies at once: try again in a moment", headers={"retry-after": "5"})
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
