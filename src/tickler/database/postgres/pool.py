"""A pool of PostgreSQL connections, its transactions, and the translation of driver errors."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal, Protocol, TypeVar
from urllib.parse import urlencode

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from tickler.database.postgres.kept_connections import KeptConnections
from tickler.database.store_url import StoreUrl
from tickler.database.using import not_a_connection
from tickler.errors import InvalidInput, SchemaMissing, StoreUnavailable

T = TypeVar("T")

Connection = asyncpg.Connection | PoolConnectionProxy

CONNECT_TIMEOUT_S = 10
COMMAND_TIMEOUT_S = 60
MAX_CONNECTIONS = 10
KEPT_STATEMENTS = 100
MAX_TRIES = 5

# Begins the transaction of a claim in one round trip. With these settings, stale statistics cannot make the planner sort the
# backlog.
BEGIN_CLAIM = "; ".join(
    ["BEGIN ISOLATION LEVEL READ COMMITTED"]
    + [f"SET LOCAL {setting} = off" for setting in ("enable_sort", "enable_seqscan", "enable_bitmapscan", "jit")]
)

BROKEN = (  # the connection is unusable
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # raised when the server closed an idle connection
    asyncpg.OperatorInterventionError,
)
_MISCONFIGURED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.UndefinedObjectError,
    asyncpg.ClientConfigurationError,
    asyncpg.ReadOnlySQLTransactionError,
)


class LostRace(Exception):
    """Another transaction inserted a row that was absent when it was read: read again."""


_TRY_AGAIN = (LostRace, asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


class Read(Protocol):
    """`Pool.read`, or what reads likewise from a snapshot."""

    def __call__(self, query: Callable[[Connection], Awaitable[T]]) -> Awaitable[T]: ...


class Pool:
    """Connections to one schema, from a pool of its own for `dsn` or from the caller's pool."""

    def __init__(self, name: str, schema: str, *, dsn: str | None = None, pool: asyncpg.Pool | None = None) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$]{0,62}", schema):
            raise InvalidInput(f"schema: {schema!r} is not a plain name: use letters, digits and _")
        self.name = name  # for messages
        self.schema = f'"{schema}"'
        self._dsn = dsn
        self._owns_pool = pool is None
        self._connections = None if pool is None else KeptConnections(pool, CONNECT_TIMEOUT_S, keeps=False)
        self._pooled = False  # behind a pooler that shares sessions
        self._channel = f"tickler {schema}"

    async def open(self) -> None:
        if self._connections is None:
            async with self._errors():
                self._connections = KeptConnections(await self._make_pool(), CONNECT_TIMEOUT_S)

    async def close(self) -> None:
        if self._owns_pool:
            connections, self._connections = self._connections, None
            if connections is not None:
                await connections.close()

    def sql(self, text: str) -> str:
        """Insert the schema's name."""
        return text.replace("{schema}", self.schema)

    async def read(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        async with self._errors():
            return await self._read_once(query)

    async def fetch(self, statement: str, *parameters: object) -> list[asyncpg.Record]:
        """Return the rows of a query."""
        text = self.sql(statement)
        return await self.read(lambda connection: connection.fetch(text, *parameters))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Read]:
        """Yield what reads as `read` does, but every time from the state of the database at this moment."""
        one_at_a_time = asyncio.Lock()
        async with AsyncExitStack() as stack:
            async with self._errors():
                connection = await stack.enter_async_context(self._connection())
                await stack.enter_async_context(connection.transaction(isolation="repeatable_read", readonly=True))
                await connection.fetchval("SELECT 1")  # the first statement takes the snapshot

            async def read(query: Callable[[Connection], Awaitable[T]]) -> T:
                async with one_at_a_time, self._errors():
                    return await query(connection)

            yield read

    async def write(self, work: Callable[[Connection], Awaitable[T]], using: object = None) -> T:
        """Run `work` in a transaction, or in a savepoint of that of `using`. Repeats it after a lost race."""
        if using is not None:
            connection = _check_using(using)
            async with self._errors(joined=True):
                return await _with_tries(lambda: _in_transaction(connection, work), (LostRace,))
        async with self._errors():
            return await _with_tries(lambda: self._write_once(work), _TRY_AGAIN)

    async def is_same(self, other: object) -> bool:
        """Tell whether `other` is a pool of the same database, so that one transaction can write to both."""
        return other is self or (isinstance(other, Pool) and await self._identity() == await other._identity())

    async def _identity(self) -> tuple[object, ...]:
        statement = "SELECT pg_postmaster_start_time(), inet_server_port(), current_database()"
        return tuple((await self.read(lambda connection: connection.fetch(statement)))[0])

    async def once(self, statement: Callable[[Connection], Awaitable[T]]) -> T:
        """Run one statement, which is its own transaction. Repeats it after a lost race."""
        async with self._errors():
            return await _with_tries(lambda: self._read_once(statement), _TRY_AGAIN)

    async def claim(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run `work` in a transaction with the planner settings of claims. Repeats it after a lost race."""
        async with self._errors():
            return await _with_tries(lambda: self._claim_once(work), _TRY_AGAIN)

    async def notify(self, connection: Connection) -> None:
        """Notify listeners when the transaction commits."""
        await connection.execute("SELECT pg_notify($1, '')", self._channel)

    async def listen(self, wake: Callable[[], None]) -> bool:
        """Call `wake` for each notification until the connection ends. Return False where a pooler would drop them."""
        if self._pooled:
            return False
        ended = asyncio.Event()
        async with self._errors(), self._connection() as connection:
            connection.add_termination_listener(lambda _: ended.set())
            await connection.add_listener(self._channel, lambda *_: wake())
            try:
                await ended.wait()
            finally:
                if not connection.is_closed():
                    connection.terminate()  # cheaper than the round trips that would reset it
        return True

    async def _claim_once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self._connection() as connection:
            await connection.execute(BEGIN_CLAIM)
            try:
                result = await work(connection)
                await connection.execute("COMMIT")
            except BaseException:
                if not connection.is_closed() and connection.is_in_transaction():
                    await connection.execute("ROLLBACK")
                raise
            return result

    async def _read_once(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        async with self._connection() as connection:
            return await query(connection)

    async def _write_once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self._connection() as connection:
            return await _in_transaction(connection, work, "read_committed")

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        connections = self._connections
        if connections is None:
            raise StoreUnavailable(f"{self.name} is closed: use it inside `async with`, or call open() first")
        connection = await connections.take()
        succeeded = False
        try:
            yield connection
            succeeded = True
        except BROKEN:
            connection.terminate()
            raise
        finally:
            await connections.give_back(connection, keep=succeeded)

    async def _make_pool(self) -> asyncpg.Pool:
        """Make a pool. Behind a pooler that shares sessions, such as PgBouncer, it keeps no prepared statements."""
        try:
            connection = await asyncpg.connect(self._dsn, timeout=CONNECT_TIMEOUT_S, statement_cache_size=0)
        except ValueError as error:
            raise InvalidInput(f"{self.name} is not a valid URL: {error}") from None
        try:
            self._pooled = await connection.fetchval("SELECT pg_backend_pid()") != connection.get_server_pid()
        finally:
            await connection.close(timeout=CONNECT_TIMEOUT_S)
        return await asyncpg.create_pool(
            self._dsn,
            min_size=0,
            max_size=MAX_CONNECTIONS,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=COMMAND_TIMEOUT_S,
            reset=_nothing_to_reset,
            statement_cache_size=0 if self._pooled else KEPT_STATEMENTS,
        )

    @asynccontextmanager
    async def _errors(self, *, joined: bool = False) -> AsyncIterator[None]:
        """Translate driver errors. `joined`: they arose in the caller's transaction."""
        try:
            yield
        except asyncpg.UndefinedTableError as error:
            raise SchemaMissing(self.name) from error
        except (asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError) as error:
            raise StoreUnavailable(
                f"{self.name}: a pooler shares its sessions, so make your asyncpg pool with statement_cache_size=0"
            ) from error
        except _TRY_AGAIN as error:
            remedy = "roll your transaction back and repeat it" if joined else "try again"
            raise StoreUnavailable(f"{self.name}: lost a race against another transaction; nothing changed: {remedy}") from error
        except asyncpg.InFailedSQLTransactionError as error:
            raise InvalidInput("using= has a transaction that failed before: roll it back and repeat it") from error
        except _MISCONFIGURED as error:
            raise StoreUnavailable(f"{self.name}: {error}: check the user, the password, the rights and the URL") from error
        except (*BROKEN, asyncpg.CannotConnectNowError) as error:
            reason = str(error) or type(error).__name__
            raise StoreUnavailable(f"{self.name}: cannot connect; nothing changed ({reason})") from error
        except asyncpg.PostgresError as error:
            raise StoreUnavailable(f"{self.name}: {error}; nothing changed") from error


async def _with_tries(attempt: Callable[[], Awaitable[T]], retried: tuple[type[Exception], ...]) -> T:
    for _ in range(MAX_TRIES - 1):
        try:
            return await attempt()
        except retried:
            continue
    return await attempt()


async def _in_transaction(
    connection: Connection, work: Callable[[Connection], Awaitable[T]], isolation: Literal["read_committed"] | None = None
) -> T:
    async with connection.transaction(isolation=isolation):
        return await work(connection)


async def _nothing_to_reset(connection: asyncpg.Connection) -> None:
    """Do nothing: sessions are returned unchanged, so that returning one costs no round trip."""


def _check_using(using: object) -> Connection:
    if not isinstance(using, asyncpg.Connection | PoolConnectionProxy):
        raise not_a_connection(using, "an asyncpg connection to this same database")
    if not using.is_in_transaction():
        raise InvalidInput("using= has no open transaction to join: call it inside `async with connection.transaction():`")
    return using


def pool_for(url: StoreUrl) -> Pool:
    """Parse `postgresql://user@host/database?schema=…`. Other parameters go to the driver, such as `sslmode`."""
    others = {name: value for name, value in url.parameters.items() if name != "schema"}
    dsn = f"postgresql://{url.location}" + (f"?{urlencode(others)}" if others else "")
    return Pool(url.text, url.parameters.get("schema", "public"), dsn=dsn)
