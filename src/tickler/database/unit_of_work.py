"""Writes of several parties that one commit does together, such as an application's items and its schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
        self.is_over = False
        self._parts: list[Any] = []
        self._joined: set[object] = set()
        self._after_commit: list[Callable[[], None]] = []

    @property
    def parts(self) -> tuple[Any, ...]:
        return tuple(self._parts)

    async def join(self, database: Database, names: Iterable[object]) -> None:
        """Raise `InvalidInput` unless parts for `database` can be added that change what `names` names. Each joins once."""
        self._refuse_if_over()
        wanted = set(names)
        self.check_not_joined(wanted)
        self._joined |= wanted
        if not await self.database.is_same(database):
            raise InvalidInput(
                f"using= is a transaction on {self.database.name}, and this is {database.name}: a transaction needs both in one "
                "file, database, or account and region"
            )

    def check_not_joined(self, names: Iterable[object]) -> None:
        """Raise `InvalidInput` if parts change what is named here already: what they write cannot be read before the commit."""
        for name in self._joined.intersection(names):
            raise InvalidInput(f"{name} is in this transaction already: change it once in each")

    def add(self, *parts: Any) -> None:
        """Add parts, after `join`. `InvalidInput` if the transaction has ended in the meantime: then they would be lost."""
        self._refuse_if_over()
        self._parts += parts

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the parts are written, and not at all if they are not."""
        self._after_commit.append(callback)

    def _refuse_if_over(self) -> None:
        if self.is_over:
            raise InvalidInput("using= is a transaction that has ended: begin another one")

    def committed(self) -> None:
        for callback in self._after_commit:
            callback()


def after_commit(using: object, callback: Callable[[], None]) -> None:
    """Call `callback` once a unit of work is written, and at once for anything else that is passed as `using=`."""
    if isinstance(using, UnitOfWork):
        using.after_commit(callback)
    else:
        callback()
