"""Writes of several parties that one commit does together, such as an application's items and its schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tickler.errors import InvalidInput


class Database(Protocol):
    """A connection, pool or client, as a unit of work compares it."""

    @property
    def name(self) -> str: ...

    async def is_same(self, other: object) -> bool:
        """Tell whether one transaction can write to both."""


class UnitOfWork:
    """Collects parts for one commit to a database. A transaction of a table is one; pass it as `using=`.

    A part has the form that the database takes: a function of a connection on SQL, requests on DynamoDB. It was decided from
    what was read before, so it checks that this is still so, and raises `TransactionConflict` otherwise.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.parts: list[Any] = []
        self.is_over = False
        self._after_commit: list[Callable[[], None]] = []

    async def join(self, database: Database) -> None:
        """Raise `InvalidInput` unless a part for `database` can be added."""
        if self.is_over:
            raise InvalidInput("using= is a transaction that has ended: begin another one")
        if not await self.database.is_same(database):
            raise InvalidInput(
                f"using= is a transaction on {self.database.name}, and this is {database.name}: a transaction needs both in one "
                "file, database, or account and region"
            )

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the parts are written, and not at all if they are not."""
        self._after_commit.append(callback)

    def committed(self) -> None:
        for callback in self._after_commit:
            callback()
