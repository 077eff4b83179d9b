"""How much memory payloads may take in a worker: as JSON while they are held, and decoded while a handler has them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from tickler.fires import Claim
from tickler.payload import RawPayload, held_payload
from tickler.target import HttpTarget, LambdaTarget, SqsTarget

MAX_HELD_BYTES = 32_000_000  # of JSON, queued and in flight: from here on, owners that hold much of it are passed over
MAX_DECODED_BYTES = 64_000_000  # of values, in the attempts under way; one owner gets half of it
SMALL_BYTES = 2_000  # JSON that is shorter does not count: it comes to less than 90 KB

_SENT_AS_JSON = frozenset({HttpTarget, SqsTarget, LambdaTarget})


def decoded_bytes(claim: Claim) -> int:
    """At most so much memory the payload takes when the target decodes it; 0 where it does not, or where that is little."""
    held = held_payload(claim.schedule)
    if type(held) is not RawPayload or len(held.json) <= SMALL_BYTES or type(claim.schedule.target) in _SENT_AS_JSON:
        return 0
    json = bytes(held.json)
    # A list with one item takes 88 bytes, an object with one 184, and a text or number with its place 64. Text with a character
    # beyond the first 65,536 takes four bytes for each.
    return 100 + 4 * len(json) + 64 * json.count(b",") + 88 * json.count(b"[") + 184 * json.count(b"{")


class _Waiter(NamedTuple):
    owner: str
    size: int
    admitted: asyncio.Future[None]


class DecodingLimit:
    """Lets attempts begin while what they may decode fits into `max_bytes`, the first that asked first.

    An owner that has half of it waits for itself, and holds up nobody else. What is larger than a limit begins when nothing
    else counts against that.
    """

    def __init__(self, max_bytes: int = MAX_DECODED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._used = 0
        self._used_by: dict[str, int] = {}
        self._waiting: deque[_Waiter] = deque()

    async def enter(self, owner: str, size: int) -> None:
        """Wait for room. Whoever has entered leaves; whoever is cancelled while waiting has not entered."""
        waiter = _Waiter(owner, size, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._admit()
        try:
            await waiter.admitted
        except asyncio.CancelledError:
            if waiter.admitted.done() and not waiter.admitted.cancelled():
                self.leave(owner, size)
            else:
                self._waiting.remove(waiter)
                self._admit()
            raise

    def leave(self, owner: str, size: int) -> None:
        self._used -= size
        self._used_by[owner] -= size
        if not self._used_by[owner]:
            del self._used_by[owner]
        self._admit()

    def _admit(self) -> None:
        for waiter in list(self._waiting):
            used_by_owner = self._used_by.get(waiter.owner, 0)
            if used_by_owner and used_by_owner + waiter.size > self._max_bytes // 2:
                continue
            if self._used and self._used + waiter.size > self._max_bytes:
                break  # those behind wait too, or a large one would wait for ever
            if not waiter.admitted.cancelled():
                self._used += waiter.size
                self._used_by[waiter.owner] = used_by_owner + waiter.size
                self._waiting.remove(waiter)
                waiter.admitted.set_result(None)
