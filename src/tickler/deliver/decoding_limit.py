"""Limits the memory of decoded payloads while handlers use them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Generic, TypeVar

MAX_DECODED_BYTES = 64_000_000  # in all attempts; one owner gets half of it

J = TypeVar("J")


class DecodingLimit(Generic[J]):
    """Admits jobs, in order, while their decoded payloads fit into `max_bytes`.

    An owner that uses half of it waits, without holding up the others. An owner that uses nothing is admitted until three times
    as much is used, so that attempts of others that hang do not keep it out. A payload larger than a limit is admitted when
    nothing else counts against that limit.
    """

    def __init__(self, max_bytes: int = MAX_DECODED_BYTES) -> None:
        self._per_owner, self._shared, self._total = max_bytes // 2, max_bytes, 3 * max_bytes
        self._used = 0
        self._used_by: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[tuple[J, int]]] = OrderedDict()  # by owner, each job with its size

    def __iter__(self) -> Iterator[J]:
        """Iterate over the jobs that wait."""
        return (job for jobs in self._waiting.values() for job, _ in jobs)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def enter(self, owner: str, size: int, job: J) -> bool:
        """Return whether the job is admitted. If not, it waits until `leave` returns it."""
        waiting = self._waiting.get(owner)
        if waiting is not None:
            waiting.append((job, size))
            return False
        self._waiting[owner] = deque([(job, size)])
        return bool(self._admit())

    def count(self, owner: str, size: int) -> None:
        """Count a payload that is decoded already, whether it fits or not."""
        self._used += size
        used = self._used_by.get(owner, 0) + size
        if used:
            self._used_by[owner] = used
        else:
            del self._used_by[owner]

    def leave(self, owner: str, size: int) -> list[tuple[J, int]]:
        """Return the jobs that are admitted now, each with its size."""
        self.count(owner, -size)
        return self._admit()

    def drain(self, owner: str) -> list[J]:
        """Remove and return the waiting jobs of an owner."""
        return [job for job, _ in self._waiting.pop(owner, ())]

    def clear(self) -> None:
        self._waiting.clear()

    def _admit(self) -> list[tuple[J, int]]:
        admitted: list[tuple[J, int]] = []
        shared_is_full = False
        for owner, jobs in list(self._waiting.items()):
            while jobs:
                size, used_by_owner = jobs[0][1], self._used_by.get(owner, 0)
                if used_by_owner:
                    if used_by_owner + size > self._per_owner:
                        break
                    shared_is_full = shared_is_full or self._used + size > self._shared
                    if shared_is_full:
                        break  # the jobs behind it wait too: otherwise a large job might wait for ever
                elif self._used and self._used + size > self._total:
                    return admitted
                self.count(owner, size)
                admitted.append(jobs.popleft())
            if not jobs:
                del self._waiting[owner]
        return admitted
