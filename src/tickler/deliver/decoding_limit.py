"""How much memory decoded payloads may take in a worker while handlers have them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Generic, TypeVar

MAX_DECODED_BYTES = 64_000_000  # of values, in the attempts under way; one owner gets half of it

J = TypeVar("J")


class DecodingLimit(Generic[J]):
    """Lets jobs begin while what they may decode fits into `max_bytes`: one owner's in order, and owners in order.

    An owner that has half of it waits for itself, and holds up nobody else. An owner that has nothing decoded may begin until
    three times as much is taken, so that others whose attempts hang do not keep it out. What is larger than a limit begins when
    nothing else counts against that.
    """

    def __init__(self, max_bytes: int = MAX_DECODED_BYTES) -> None:
        self._of_one_owner, self._shared, self._total = max_bytes // 2, max_bytes, 3 * max_bytes
        self._used = 0
        self._used_by: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[tuple[J, int]]] = OrderedDict()  # by owner, each job with its size

    def __iter__(self) -> Iterator[J]:
        """What waits."""
        return (job for jobs in self._waiting.values() for job, _ in jobs)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def enter(self, owner: str, size: int, job: J) -> bool:
        """Whether it may begin. Otherwise it waits, until `leave` returns it."""
        waiting = self._waiting.get(owner)
        if waiting is not None:
            waiting.append((job, size))
            return False
        self._waiting[owner] = deque([(job, size)])
        return bool(self._admit())

    def count(self, owner: str, size: int) -> None:
        """What is decoded already, whether it fits or not."""
        self._used += size
        left = self._used_by.get(owner, 0) + size
        if left:
            self._used_by[owner] = left
        else:
            del self._used_by[owner]

    def leave(self, owner: str, size: int) -> list[tuple[J, int]]:
        """Jobs that may begin now, each with its size: they have entered."""
        self.count(owner, -size)
        return self._admit()

    def drain(self, owner: str) -> list[J]:
        """All of that owner that wait, and do so no more."""
        return [job for job, _ in self._waiting.pop(owner, ())]

    def clear(self) -> None:
        """Nothing waits any more."""
        self._waiting.clear()

    def _admit(self) -> list[tuple[J, int]]:
        admitted: list[tuple[J, int]] = []
        shared_is_full = False
        for owner, jobs in list(self._waiting.items()):
            while jobs:
                size, used_by_owner = jobs[0][1], self._used_by.get(owner, 0)
                if used_by_owner:
                    if used_by_owner + size > self._of_one_owner:
                        break
                    shared_is_full = shared_is_full or self._used + size > self._shared
                    if shared_is_full:
                        break  # those behind wait too, or a large one would wait for ever
                elif self._used and self._used + size > self._total:
                    return admitted
                self.count(owner, size)
                admitted.append(jobs.popleft())
            if not jobs:
                del self._waiting[owner]
        return admitted
