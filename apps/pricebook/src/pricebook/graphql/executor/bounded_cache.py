"""A cache that forgets what was used longest ago when it holds too much."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """`capacity` bounds the sum of the weights. What is heavier than that alone is not kept."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.weight = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        if weight > self.capacity:
            return
        replaced = self._entries.pop(key, None)
        self.weight += weight - (0 if replaced is None else replaced[1])
        self._entries[key] = (value, weight)
        while self.weight > self.capacity:
            _, (_, dropped) = self._entries.popitem(last=False)
            self.weight -= dropped
