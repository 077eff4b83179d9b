"""Counts the memory of payloads in a worker: as JSON while they are held, and decoded while a handler uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tickler.deliver.decoding_limit import DecodingLimit
from tickler.deliver.fair_queue import Lane
from tickler.model.delivery import Delivery
from tickler.model.fire import Claim
from tickler.model.payload import RawPayload, held_payload
from tickler.model.schedule import StoredSchedule
from tickler.model.target import HttpTarget, LambdaTarget, SqsTarget

MAX_HELD_BYTES = 32_000_000  # of JSON, queued and in flight: beyond that, claims pass over owners that hold much of it
SMALL_BYTES = 2_000  # shorter JSON does not count: decoded, it takes less than 100 KB

_SENT_AS_JSON = frozenset({HttpTarget, SqsTarget, LambdaTarget})

Holder = StoredSchedule | Delivery
Queued = tuple[Lane, Claim]


class HeldPayloads:
    """Counts the JSON of large payloads. Claims of one schedule may share a buffer, which counts once."""

    def __init__(self) -> None:
        self.bytes = 0
        self.bytes_of: dict[str, int] = {}  # by owner
        self._holders: dict[int, int] = {}  # by the buffer's identity, unique while it is held

    def add(self, holder: Holder) -> None:
        held = held_payload(holder)
        if type(held) is RawPayload and (size := len(held.json)) > SMALL_BYTES:
            holders = self._holders[id(held.json)] = self._holders.get(id(held.json), 0) + 1
            if holders == 1:
                self._change(holder.owner, size)

    def remove(self, holder: Holder) -> None:
        held = held_payload(holder)
        if type(held) is RawPayload and (size := len(held.json)) > SMALL_BYTES:
            holders = self._holders.pop(id(held.json)) - 1
            if holders:
                self._holders[id(held.json)] = holders
            else:
                self._change(holder.owner, -size)

    def _change(self, owner: str, by: int) -> None:
        self.bytes += by
        held = self.bytes_of.get(owner, 0) + by
        if held:
            self.bytes_of[owner] = held
        else:
            del self.bytes_of[owner]


class PayloadMemory:
    """Counts the large payloads of claims from `add` to `remove`; `admits` says which claims may decode theirs."""

    def __init__(self) -> None:
        self.held = HeldPayloads()
        self._limit: DecodingLimit[Queued] = DecodingLimit()
        self._decoded: dict[int, int] = {}  # by identity of an admitted claim, its largest possible size

    @property
    def number_waiting(self) -> int:
        return len(self._limit)

    def waiting(self) -> Iterator[Claim]:
        """Iterate over the claims that are not admitted yet."""
        return (claim for _, claim in self._limit)

    def add(self, claim: Claim) -> None:
        self.held.add(claim.schedule)

    def remove(self, claim: Claim) -> list[Queued]:
        """Stop counting a claim; return those that are admitted now, in order."""
        self.held.remove(claim.schedule)
        size = self._decoded.pop(id(claim), 0)
        return self._freed(claim.schedule.owner, size) if size else []

    def admits(self, lane: Lane, claim: Claim) -> bool:
        """Return whether there is memory for what its target decodes. If not, the claim waits until `remove` returns it."""
        if id(claim) in self._decoded or not (size := decoded_bytes(claim.schedule)):
            return True
        is_admitted = self._limit.enter(lane.owner, size, (lane, claim))
        if is_admitted:
            self._decoded[id(claim)] = size
        return is_admitted

    def keep(self, delivery: Delivery) -> Callable[[], list[Queued]]:
        """Count an abandoned attempt until the returned function is called, which returns what `remove` does."""
        size = decoded_bytes(delivery)
        self.held.add(delivery)
        if size:
            self._limit.count(delivery.owner, size)

        def end() -> list[Queued]:
            self.held.remove(delivery)
            return self._freed(delivery.owner, size) if size else []

        return end

    def drain(self, owner: str) -> list[Queued]:
        """Remove and return the waiting claims of an owner."""
        return self._limit.drain(owner)

    def clear(self) -> None:
        self._limit.clear()

    def _freed(self, owner: str, size: int) -> list[Queued]:
        admitted = self._limit.leave(owner, size)
        self._decoded |= {id(claim): its_size for (_, claim), its_size in admitted}
        return [queued for queued, _ in admitted]


def decoded_bytes(holder: Holder) -> int:
    """Return an upper bound of the decoded payload's memory; 0 if its target does not decode it, or if it is small."""
    held = held_payload(holder)
    if type(held) is not RawPayload or len(held.json) <= SMALL_BYTES or type(holder.target) in _SENT_AS_JSON:
        return 0
    json = bytes(held.json)
    # A list with one item takes 88 bytes, an object with one 184, and a text or number in its slot 64. Text with a character
    # beyond the first 65,536 takes four bytes for each. Empty, a list takes 56 bytes, an object 64, and the slot of either 9.
    size = 100 + 4 * len(json) + 64 * json.count(b",") + 88 * json.count(b"[") + 184 * json.count(b"{")
    size -= 32 * json.count(b"[]") + 120 * json.count(b"{}")
    return size - 48 * (json.count(b"[],") + json.count(b"{},"))
