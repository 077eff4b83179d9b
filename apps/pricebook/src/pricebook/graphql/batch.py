"""Reads what the nodes of a list ask for together, and each thing once a request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from strawberry.dataloader import DataLoader

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

BATCHED = "pricebook.batched"  # key in the metadata of a field
BATCHED_READ = 50  # what a node costs, beside one read for all
OWN_READ = 100  # what a node costs that is read by itself


class Batch(Generic[K, V]):
    """The results of one request, by key. What was read once is not read again, whoever runs the query."""

    def __init__(self, read: Callable[[Sequence[K]], Awaitable[Sequence[V | Exception]]]) -> None:
        self._read = read
        self._known: dict[K, V | Exception] = {}
        self._loader: DataLoader[K, V] = DataLoader(load_fn=self.many)

    async def many(self, keys: Sequence[K]) -> list[V | Exception]:
        """Return the results of keys, with one read for those that are new. A failure is a result, too."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._known]
        if missing:
            self._known.update(zip(missing, await self._read(missing), strict=True))
        return [self._known[key] for key in keys]

    async def one(self, key: K) -> V:
        """Return the result of a key. Those that are asked for at the same time are read together."""
        return await self._loader.load(key)


ReadMany = Callable[[Any, Sequence[Any]], Awaitable[Sequence[Any]]]  # the context and keys


class BatchedField(Struct, frozen=True):
    """How a field of many nodes is read at once.

    `key` makes a key of a node, the context and the field's arguments. `read` reads those of a request.
    """

    key: Callable[..., Hashable]
    read: ReadMany
    cost: int = BATCHED_READ  # of each node


async def each(read: Callable[[K], Awaitable[V]], keys: Sequence[K]) -> list[V | Exception]:
    """Read keys that cannot be read in one go, all at the same time. They fail one by one."""

    async def attempt(key: K) -> V | Exception:
        try:
            return await read(key)
        except Exception as error:
            return error

    return list(await asyncio.gather(*(attempt(key) for key in keys)))
