"""SQLite, the embedded default. Several processes may use one file."""

from __future__ import annotations

import logging
from pathlib import Path

from tickler.database.migrations import check_version, script
from tickler.database.progress import OnProgress, no_progress
from tickler.database.sqlite import space
from tickler.database.sqlite.connection import Connection, connection_for
from tickler.database.storage import StorageProblem
from tickler.database.store_url import StoreUrl
from tickler.stores.optional import no_such_form
from tickler.stores.sqlite import backup, schema
from tickler.stores.sqlite.contents import contents
from tickler.stores.sqlite.fires import SqliteFires
from tickler.stores.sqlite.index import SqliteIndex
from tickler.stores.sqlite.records import SqliteRecords
from tickler.stores.sqlite.schedules import SqliteSchedules
from tickler.stores.sqlite.sends import SqliteSends
from tickler.stores.store import Capabilities

log = logging.getLogger("tickler")


class SqliteStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = self.database = connection
        in_file = connection.path != ":memory:"
        self.capabilities = Capabilities(shared=in_file, joins_transactions=in_file, order="total", poll_ms=500)
        self.schedules = SqliteSchedules(self._connection)
        self.index = SqliteIndex(self._connection)
        self.records = SqliteRecords(self._connection)
        self.fires = SqliteFires(self._connection, self.index)
        self.sends = SqliteSends(self._connection)
        self.contents = contents(self._connection)

    async def open(self, *, create: bool) -> None:
        connection = self._connection
        await connection.open(may_create=create)
        try:
            found = await connection.read(schema.version)
            if found is None and create:
                made = await connection.write(lambda raw: schema.migrate(raw, connection.name))
                if made and self.capabilities.shared:  # the path of a file may be mistyped
                    log.info("created the Tickler tables in %s", connection.name)
                found = await connection.read(schema.version)
            check_version(connection.name, found, schema.NEWEST)
        except BaseException:
            await connection.close()
            raise

    async def close(self) -> None:
        await self._connection.close()

    async def migrate(self) -> list[str]:
        await self._connection.open()
        try:
            return await self._connection.write(lambda raw: schema.migrate(raw, self._connection.name))
        finally:
            await self._connection.close()

    async def storage_problem(self) -> StorageProblem | None:
        connection = self._connection
        return await connection.read(lambda raw: space.wal_problem(raw, connection.path, connection.wal_bytes))

    async def backup(self, file: Path, on_progress: OnProgress = no_progress) -> dict[str, int]:
        return await backup.back_up(self._connection, file, on_progress)

    async def restore(self, file: Path, on_progress: OnProgress = no_progress) -> dict[str, int]:
        return await backup.restore(self._connection, file, on_progress)

    def definition(self, form: str) -> str:
        if form != "sql":
            raise no_such_form(self._connection.name, form, "sql")
        return script(schema.MIGRATIONS)


def open_store(url: StoreUrl) -> SqliteStore:
    return SqliteStore(connection_for(url))
