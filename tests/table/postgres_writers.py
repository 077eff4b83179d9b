"""Writers that change random items of a table in PostgreSQL at once, and remember what they have committed."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg

from tickler.errors import ConditionFailed, ItemNotFound
from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.open_table import OpenTable

ITEMS = 60

streamed = Table("streamed", stream=True)


class Doc(Entity, table=streamed):
    id: Attr[int] = attr()
    text: Attr[str] = attr(default="new")
    key = Key("DOC" / id, "DOC")
    by_text = Index("gsi1", "TEXT", text / id)


class Committed:
    """What was committed: texts, each of which was written once, and the number of deletions."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.texts: list[str] = []
        self.deletions = 0

    @property
    def changes(self) -> int:
        return len(self.texts) + self.deletions

    @property
    def is_enough(self) -> bool:
        return self.changes >= self.wanted

    def add(self, texts: list[str], deletions: int) -> None:
        self.texts += texts
        self.deletions += deletions


class WriterByHand:
    """Transactions in plain SQL, with savepoints. Some are rolled back, and some hold their numbers for a while."""

    def __init__(self, name: str, connection: asyncpg.Connection, schema: str, committed: Committed, seed: int) -> None:
        self._name = name
        self._connection = connection
        self._committed = committed
        self._random = random.Random(f"{name} {seed}")
        self._number = 0
        self._upsert = f"""
            INSERT INTO {schema}.streamed (pk, sk, entity, body) VALUES ($1, 'DOC', 'Doc', $2)
            ON CONFLICT (pk, sk) DO UPDATE SET body = excluded.body
        """
        self._delete = f"DELETE FROM {schema}.streamed WHERE pk = $1"
        self._touch = f"UPDATE {schema}.streamed SET body = body WHERE pk = $1"

    async def run(self) -> None:
        while not self._committed.is_enough:
            await self._transaction()
        await self._connection.close()

    async def _transaction(self) -> None:
        transaction = self._connection.transaction()
        await transaction.start()
        try:
            texts, deletions = await self._changes()
        except asyncpg.DeadlockDetectedError:
            await transaction.rollback()
            return
        if self._chance(0.2):
            await transaction.rollback()
        else:
            await transaction.commit()
            self._committed.add(texts, deletions)

    async def _changes(self) -> tuple[list[str], int]:
        texts: list[str] = []
        deletions = 0
        for id in sorted(self._random.sample(range(ITEMS), self._random.randint(1, 4))):
            written, deleted = await self._change(id)
            texts += written
            deletions += deleted
            if self._chance(0.1):
                await self._connection.execute("SELECT pg_sleep(0.003)")
        return texts, deletions

    async def _change(self, id: int) -> tuple[list[str], int]:
        if not self._chance(0.3):
            return await self._statement(id)
        savepoint = self._connection.transaction()
        await savepoint.start()
        changed = await self._statement(id)
        if self._chance(0.5):
            await savepoint.rollback()
            return [], 0
        await savepoint.commit()
        return changed

    async def _statement(self, id: int) -> tuple[list[str], int]:
        kind, pk = self._random.random(), Doc.key.id(id).pk
        if kind < 0.1:
            await self._connection.execute(self._touch, pk)
            return [], 0
        if kind < 0.3:
            return [], int((await self._connection.execute(self._delete, pk)).removeprefix("DELETE "))
        self._number += 1
        text = f"{self._name}.{self._number}"
        await self._connection.execute(self._upsert, pk, f'{{"id":{id},"text":"{text}"}}'.encode())
        return [text], 0

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability


class WriterOfTable:
    """Writes through the toolkit: puts, updates, deletes, batches, and transactions, some of which fail."""

    def __init__(self, name: str, db: OpenTable, committed: Committed, seed: int) -> None:
        self._name = name
        self._db = db
        self._committed = committed
        self._random = random.Random(f"{name} {seed}")
        self._number = 0

    async def run(self) -> None:
        works: list[Callable[[], Awaitable[None]]] = [self._put, self._update, self._delete, self._batch, self._transaction]
        while not self._committed.is_enough:
            with suppress(ConditionFailed, ItemNotFound):
                await self._random.choice(works)()

    async def _put(self) -> None:
        doc = self._doc(self._id())
        await self._db.put(doc)
        self._committed.add([doc.text], 0)

    async def _update(self) -> None:
        doc = self._doc(self._id())
        await self._db.update(doc.key, Doc.text.set(doc.text))
        self._committed.add([doc.text], 0)

    async def _delete(self) -> None:
        self._committed.add([], int(await self._db.delete(Doc.key.id(self._id())) is not None))

    async def _batch(self) -> None:
        docs = [self._doc(id) for id in self._random.sample(range(ITEMS), 5)]
        await self._db.put_many(docs)
        self._committed.add([doc.text for doc in docs], 0)

    async def _transaction(self) -> None:
        first, second, third = self._random.sample(range(ITEMS), 3)
        docs = [self._doc(first), self._doc(second)]
        async with self._db.transaction() as tx:
            for doc in docs:
                tx.put(doc)
            tx.check(Doc.key.id(third), Doc.id.missing())
        self._committed.add([doc.text for doc in docs], 0)

    def _id(self) -> int:
        return self._random.randrange(ITEMS)

    def _doc(self, id: int) -> Doc:
        self._number += 1
        return Doc(id=id, text=f"{self._name}.{self._number}")
