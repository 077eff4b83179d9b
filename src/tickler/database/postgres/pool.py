"""A pool of connections, transactions on it, and what PostgreSQL's errors mean."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from tickler.errors import InvalidInput, SchemaMissing, StoreUnavailable

T = TypeVar("T")

Connection = asyncpg.Connection | PoolConnectionProxy

CONNECT_TIMEOUT_S = 10
COMMAND_TIMEOUT_S = 60
MAX_CONNECTIONS = 10
KEPT_STATEMENTS = 100
MAX_TRIES = 5

# How a transaction of a claim begins: in one round trip, and so that no stale statistics make the planner sort the backlog.
BEGIN_CLAIM = "; ".join(
    ["BEGIN ISOLATION LEVEL READ COMMITTED"]
    + [f"SET LOCAL {setting} = off" for setting in ("enable_sort", "enable_seqscan", "enable_bitmapscan", "jit")]
)

BROKEN = (  # the connection is of no use any more
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what it says when the server went away while it was idle
    asyncpg.OperatorInterventionError,
)
_UNAVAILABLE = (
    *BROKEN,
    asyncpg.CannotConnectNowError,
    asyncpg.InsufficientResourcesError,
    asyncpg.LockNotAvailableError,
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
    """Somebody else inserted what was not there when it was read: read again."""


_TRY_AGAIN = (LostRace, asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


class Pool:
    """Connections to one schema: of a pool that it makes for `dsn`, or of the caller's pool."""

    def __init__(self, name: str, schema: str, *, dsn: str | None = None, pool: asyncpg.Pool | None = None) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$]{0,62}", schema):
            raise InvalidInput(f"schema: {schema!r} is not a plain name: use letters, digits and _")
        self.name = name  # what people call this store, for messages
        self.schema = f'"{schema}"'
        self._dsn = dsn
        self._pool = pool
        self._owns_pool = pool is None
        self._pooled = False  # by a pooler that shares sessions
        self._channel = f"tickler {schema}"

    async def open(self) -> None:
        if self._pool is None:
            async with self._errors():
                self._pool = await self._make_pool()

    async def close(self) -> None:
        pool = self._pool
        if self._owns_pool and pool is not None:
            self._pool = None
            try:
                await asyncio.wait_for(pool.close(), CONNECT_TIMEOUT_S)
            except TimeoutError:
                pool.terminate()

    def sql(self, text: str) -> str:
        """Put the schema's name in its places."""
        return text.replace("{schema}", self.schema)

    async def read(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        async with self._errors():
            return await self._read_once(query)

    async def write(self, work: Callable[[Connection], Awaitable[T]], using: object = None) -> T:
        """Run `work` in a transaction, or in a savepoint of the one that `using` has open; again if it loses a race."""
        if using is not None:
            connection = _check_using(using)
            async with self._errors(joined=True):
                return await _with_tries(lambda: _in_transaction(connection, work), (LostRace,))
        async with self._errors():
            return await _with_tries(lambda: self._write_once(work), _TRY_AGAIN)

    async def once(self, statement: Callable[[Connection], Awaitable[T]]) -> T:
        """Run one statement, which is a transaction by itself; again if it loses a race."""
        async with self._errors():
            return await _with_tries(lambda: self._read_once(statement), _TRY_AGAIN)

    async def claim(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run `work` in a transaction that is planned for claims; again if it loses a race."""
        async with self._errors():
            return await _with_tries(lambda: self._claim_once(work), _TRY_AGAIN)

    async def notify(self, connection: Connection) -> None:
        """Call those who listen, when the transaction commits."""
        await connection.execute("SELECT pg_notify($1, '')", self._channel)

    async def listen(self, wake: Callable[[], None]) -> bool:
        """Call `wake` for each notification, until the connection ends; False where a pooler would swallow them."""
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
                    connection.terminate()  # it is worth less than the round trips to make it an ordinary one again
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
        if self._pool is None:
            raise StoreUnavailable(f"{self.name} is closed: use it inside `async with tickler.connect(…)`")
        async with self._pool.acquire(timeout=CONNECT_TIMEOUT_S) as connection:
            try:
                yield connection
            except BROKEN:
                connection.terminate()
                raise

    async def _make_pool(self) -> asyncpg.Pool:
        """Behind a pooler that shares sessions, such as PgBouncer, prepared statements cannot be kept."""
        try:
            connection = await asyncpg.connect(self._dsn, timeout=CONNECT_TIMEOUT_S, statement_cache_size=0)
        except ValueError as error:
            raise InvalidInput(f"{self.name} does not read as a URL: {error}") from None
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
        """What the driver's errors mean. `joined`: they came up in a transaction of the caller's."""
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
            raise StoreUnavailable(f"{self.name}: somebody else was faster; nothing was changed: {remedy}") from error
        except asyncpg.InFailedSQLTransactionError as error:
            raise InvalidInput("using: its transaction has failed before: roll it back and repeat it") from error
        except _MISCONFIGURED as error:
            raise StoreUnavailable(f"{self.name}: {error}: check the user, the password, the rights and the URL") from error
        except _UNAVAILABLE as error:
            reason = str(error) or type(error).__name__
            raise StoreUnavailable(f"{self.name}: {reason}; nothing was half done: try again when it answers") from error
        except asyncpg.PostgresError as error:
            raise StoreUnavailable(f"{self.name}: {error}; nothing was half done") from error


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
    """Sessions are left as they were found, so that giving one back costs no round trip."""


def _check_using(using: object) -> Connection:
    if not isinstance(using, asyncpg.Connection | PoolConnectionProxy):
        raise InvalidInput(f"using: is a {type(using).__name__}: pass an asyncpg connection to this same database")
    if not using.is_in_transaction():
        raise InvalidInput("using: has no transaction open to join: call it inside `async with connection.transaction():`")
    return using
