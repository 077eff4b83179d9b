"""A table without `await`: what the generic wrapper cannot do, because a function is passed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from tickler.database.blocking import Blocking
from tickler.errors import TransactionConflict

R = TypeVar("R")


class BlockingConsumer(Blocking):
    """A `Consumer` whose methods block."""

    def stop(self) -> None:
        """Let `run` end after the handlers that have begun. Any thread may call it, also that of a handler."""
        self._loop.run(_stopped(self._wrapped))


async def _stopped(consumer: Any) -> None:
    consumer.stop()


class BlockingTable(Blocking):
    """An `OpenTable` whose methods block. Made by `Table.connect_sync`."""

    def transact(self, work: Callable[[Any], R], *, tries: int = 5) -> R:
        """Call `work` with a transaction and commit it, again if others changed what it had read. Returns what `work` returns."""
        for _ in range(tries - 1):
            with suppress(TransactionConflict):
                return self._transacted(work)
        return self._transacted(work)

    def consumer(self, name: str, **options: Any) -> BlockingConsumer:
        """Return a consumer of the changes of this table. Its handlers are plain functions, which run in threads."""
        return self.beside(lambda table: table.consumer(name, **options), BlockingConsumer)

    def _transacted(self, work: Callable[[Any], R]) -> R:
        with self.transaction() as transaction:
            return work(transaction)
