"""How far a consumer has come, which processes work for it, and what each holds: entries in the metadata of the table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from tickler.table.engines.metadata import EntryWrite, Metadata
from tickler.table.streams.leases import ShardState

PREFIX = "stream/"  # of all consumers of a table

_encode = msgspec.json.encode
_decode_state = msgspec.json.Decoder(ShardState).decode
_decode_until = msgspec.json.Decoder(int).decode


class Loaded(NamedTuple):
    """The states of shards, and until when each process is a member."""

    states: dict[str, ShardState]
    members: dict[str, int]


class Progress:
    """The entries of one consumer. A state is saved only over the version that was loaded, or saved, last."""

    def __init__(self, metadata: Metadata, consumer: str) -> None:
        self._metadata = metadata
        self._shards = f"{PREFIX}{consumer}/shards/"
        self._members = f"{PREFIX}{consumer}/members/"
        self._prefix = f"{PREFIX}{consumer}/"
        self._versions: dict[str, int] = {}

    async def load(self) -> Loaded:
        loaded = Loaded({}, {})
        self._versions = {}
        for entry in await self._metadata.read(self._prefix):
            if entry.key.startswith(self._shards):
                shard = entry.key.removeprefix(self._shards)
                loaded.states[shard] = _decode_state(entry.value)
                self._versions[shard] = entry.version
            elif entry.key.startswith(self._members):
                loaded.members[entry.key.removeprefix(self._members)] = _decode_until(entry.value)
        return loaded

    async def save(self, states: Mapping[str, ShardState]) -> set[str]:
        """Save states, and return the shards of which another process has not saved one in between."""
        writes = [EntryWrite(self._shards + shard, _encode(state), self._version(shard)) for shard, state in states.items()]
        outcomes = await self._metadata.write(writes)
        saved = {shard for shard, is_done in zip(states, outcomes, strict=True) if is_done}
        self._versions |= {shard: self._version(shard) + 1 for shard in saved}
        return saved

    async def forget(self, shards: Collection[str]) -> None:
        """Delete the states of shards that are of no use any more."""
        await self._metadata.write([EntryWrite(self._shards + shard, None, self._version(shard)) for shard in shards])

    async def join(self, member: str, until_ms: int) -> None:
        await self._metadata.write([EntryWrite(self._members + member, _encode(until_ms))])

    async def leave(self, members: Collection[str]) -> None:
        await self._metadata.write([EntryWrite(self._members + member, None) for member in members])

    def _version(self, shard: str) -> int:
        return self._versions.get(shard, 0)


async def all_states(metadata: Metadata) -> dict[str, dict[str, ShardState]]:
    """Return the states of shards by the consumers of a table."""
    found: dict[str, dict[str, ShardState]] = {}
    for entry in await metadata.read(PREFIX):
        consumer, _, rest = entry.key.removeprefix(PREFIX).partition("/")
        if rest.startswith("shards/"):
            found.setdefault(consumer, {})[rest.removeprefix("shards/")] = _decode_state(entry.value)
    return found
