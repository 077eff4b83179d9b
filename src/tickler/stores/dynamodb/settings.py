"""Settings that all processes on a table share: the number of shards, and the version of the layout."""

from __future__ import annotations

import asyncio

import msgspec

from tickler.dynamo.client import Client
from tickler.dynamo.codec import Item
from tickler.dynamo.failures import RequestRefused
from tickler.errors import SchemaMissing
from tickler.stores.dynamodb.layout import SETTINGS_KEY, number

REFRESH_MS = 10_000


class Settings(msgspec.Struct, frozen=True):
    """Claims search `read_shards` shards; writes spread rows over `write_shards`.

    Readers are never behind writers: `maintenance/reshard.py` raises `read_shards` first.
    """

    schema: int
    read_shards: int
    write_shards: int
    refresh_ms: int = REFRESH_MS  # maximum age of a process's copy when it claims or writes

    def item(self) -> Item:
        return {**SETTINGS_KEY, **{name: number(getattr(self, name)) for name in self.__struct_fields__}}


async def read_settings(client: Client, table: str) -> Settings | None:
    """Read the settings. Returns None if the table or its settings item does not exist."""
    try:
        answer = await client.call("GetItem", {"TableName": table, "Key": SETTINGS_KEY, "ConsistentRead": True})
    except RequestRefused as error:
        if error.code == "ResourceNotFound":
            return None
        raise
    item = answer.get("Item")
    return Settings(*(int(item[name]["N"]) for name in Settings.__struct_fields__)) if item else None


class CurrentSettings:
    """Caches the settings, and reads them again once they are older than `refresh_ms`."""

    def __init__(self, client: Client, table: str, name: str) -> None:
        self._client = client
        self._table = table
        self._name = name
        self._settings: Settings | None = None
        self._read_at = 0.0

    async def get(self) -> Settings:
        now = asyncio.get_running_loop().time()
        if self._settings is None or now - self._read_at >= self._settings.refresh_ms / 1000:
            found = await read_settings(self._client, self._table)
            if found is None:
                raise SchemaMissing(self._name)
            self._settings, self._read_at = found, now
        return self._settings

    def forget(self) -> None:
        self._settings = None
