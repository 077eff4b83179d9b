"""What the shared reads need of a database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

NO_LIMIT = (1 << 63) - 1  # the greatest number that both databases take


class Database(Protocol):
    async def fetch(self, statement: str, *parameters: object) -> Sequence[Iterable[Any]]:
        """Return the rows of a query with `{schema}.` before tables and parameters $1, $2, …"""
