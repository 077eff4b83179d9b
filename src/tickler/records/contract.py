"""The contract of a store of records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tickler.errors import TransactionConflict, VersionConflict
from tickler.model.record import Record


def label_of(kind: str, name: str) -> str:
    """Return what a transaction calls a record."""
    return f"the record {kind}/{name}"


@contextmanager
def as_it_was_read(kind: str, name: str) -> Iterator[None]:
    """Raise `TransactionConflict` if a part of a transaction finds another version of a record than it was decided from."""
    try:
        yield
    except VersionConflict as error:
        raise TransactionConflict(label_of(kind, name)) from error


class RecordStore(Protocol):
    """Keeps JSON values by kind and name. An expired record must be absent from every answer, pruned or not.

    `using` is a connection of the caller with an open transaction, which the write joins. Or it is a `UnitOfWork`: then the write
    becomes a part of it, decided from what is stored now, and `TransactionConflict` is raised at the commit if that has changed.
    """

    async def get(self, kind: str, name: str, *, now_ms: int) -> Record | None: ...

    async def put(
        self,
        kind: str,
        name: str,
        value: bytes,
        *,
        now_ms: int,
        expires_at: int | None = None,
        expected: int | None = None,
        using: object = None,
    ) -> int:
        """Write encoded JSON and return the new version.

        With `expected`, `VersionConflict` if another version is stored; 0 means that there must be none.
        """

    async def delete(self, kind: str, name: str, *, using: object = None) -> bool:
        """Delete a record and return whether there was one: of concurrent calls, one gets True."""

    async def list(self, kind: str, *, now_ms: int, after: str = "", limit: int = 100) -> list[Record]:
        """Return records of a kind with names greater than `after`, by name."""

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        """Remove up to `limit` records that expired by then, and return how many."""
