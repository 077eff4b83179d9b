"""From a URL to a Tickler: which stores there are, what is refused, and what opening does."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from postgres_server import PostgresServer
from tickler.client import Tickler
from tickler.clock import ManualClock, SystemClock
from tickler.connect import BACKENDS, connect, connect_sync, store_for_url
from tickler.database.store_url import parse_url
from tickler.errors import InvalidInput, SchemaMissing, StoreUnavailable, TicklerError
from tickler.model.delivery import Delivery
from tickler.model.index_row import IndexRow
from tickler.model.schedule import Schedule
from tickler.model.target import PythonTarget
from tickler.when import Cron, tzdata_version

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOURLY = Cron("0 * * * *")
DIGEST = Schedule(owner="u1", key="digest", when=HOURLY)

WITHOUT_ASYNCPG = """
import sys
sys.modules["asyncpg"] = None
import tickler
try:
    {call}
except tickler.InvalidInput as error:
    print(error)
"""
SHELF_MODULE = '''
"""Somebody else's store."""

from tickler.stores.memory import MemoryStore


def open_store(url):
    print(url.scheme, url.location, dict(url.parameters))
    return MemoryStore()
'''
USE_SHELF = """
import asyncio
import tickler

async def main():
    async with tickler.connect("shelf://somewhere/else?depth=3") as t:
        await t.schedules.put(tickler.Schedule(owner="u1", key="digest", when="@hourly"))
        print(await t.index.count())
    try:
        tickler.connect("cupboard://")
    except tickler.InvalidInput as error:
        print(error)

asyncio.run(main())
"""


def python(code: str, *folders: Path, **environment: str) -> list[str]:
    path = os.pathsep.join([*map(str, folders), *(path for path in sys.path if path)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


async def execute(url: str, sql: str) -> None:
    """Behind the store's back, on SQLite or PostgreSQL."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        with connection:
            connection.execute(sql)
        connection.close()
        return
    schema = parse_qs(urlsplit(url).query)["schema"][0]
    postgres = await asyncpg.connect(url.partition("&schema=")[0])
    await postgres.execute(f"SET search_path = {schema}")
    await postgres.execute(sql)
    await postgres.close()


@pytest.fixture(params=["sqlite", "postgres"])
def lasting_url(request: pytest.FixtureRequest) -> str:
    """A store that outlives its Tickler."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
async def pool(postgres_server: PostgresServer) -> AsyncIterator[asyncpg.Pool]:
    async with asyncpg.create_pool(postgres_server.dsn, min_size=0, max_size=2) as pool:
        yield pool


# URLs.


async def test_a_relative_path_is_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for url, file in (("sqlite:///here.db", "here.db"), ("sqlite:///data/there.db", "data/there.db")):
        async with connect(url) as t:
            await t.schedules.put(DIGEST)
        assert (tmp_path / file).is_file()


async def test_four_slashes_begin_an_absolute_path(tmp_path: Path) -> None:
    file = tmp_path / "a b.db"
    async with connect(f"sqlite:///{file}?timeout=0.5") as t:
        await t.schedules.put(DIGEST)
    assert str(file).startswith("/")
    assert file.is_file()


@pytest.mark.parametrize("url", ["sqlite://", "memory://"])
async def test_a_store_in_memory_is_its_own_and_leaves_no_file(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with connect(url) as one, connect(url) as other:
        await one.schedules.put(DIGEST)
        assert await one.index.count() == 1
        assert await other.index.count() == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://tickler.db", r"write three slashes before a relative path, as in sqlite:///tickler\.db"),
        ("sqlite://data/tickler.db", "three slashes"),
        ("sqlite:///t.db?colour=blue", "unknown parameter 'colour': use timeout"),
        ("sqlite:///t.db?Timeout=5", "unknown parameter 'Timeout'"),
        ("sqlite:///t.db?colour=", "unknown parameter 'colour'"),
        *(
            (f"sqlite:///t.db?timeout={bad}", "is not a number of seconds")
            for bad in ("", "soon", "-1", "3601", "nan", "inf", "5s")
        ),
        ("mysql://user@host/database", "has an unknown scheme: use one of memory://, sqlite://, postgresql://"),
        ("SQLITE:///t.db", "has an unknown scheme: use one of"),
        ("http://example.org/", "has an unknown scheme: use one of"),
        ("://", "has an unknown scheme: use one of"),
        ("", "^not a store's URL"),
        ("tickler.db", "^not a store's URL: write one such as 'sqlite:///tickler.db'"),
        ("sqlite:tickler.db", "^not a store's URL"),
        (5, "^not a store's URL"),
        (b"sqlite://", "^not a store's URL"),
        (Path("tickler.db"), "^not a store's URL"),
        ("postgresql://localhost/x?schema=a b", "schema: 'a b' is not a plain name"),
        ("postgresql://localhost/x?schema=", "schema: '' is not a plain name"),
        ('postgresql://localhost/x?schema=a"; DROP SCHEMA public; --', "is not a plain name"),
    ],
    ids=str,
)
def test_a_url_that_names_no_store_is_refused_before_anything_is_opened(
    url: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for make in (connect, connect_sync, store_for_url):
        with pytest.raises(InvalidInput, match=said):
            make(url)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_scheme_lists_every_known_one() -> None:
    with pytest.raises(InvalidInput) as refused:
        connect("mysql://host")
    for scheme in BACKENDS:
        assert f"{scheme}://" in str(refused.value)


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    folder = f"{tmp_path}/no/such"
    for create in (True, False):  # whoever only looks is not sent to migrate, which needs the folder too
        with pytest.raises(StoreUnavailable, match=f"there is no folder '{folder}': make it with `mkdir -p {folder}`"):
            await connect(f"sqlite:///{folder}/t.db", create=create).open()
    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database\n" * 1000, encoding="utf-8")
    for create in (True, False):
        with pytest.raises(StoreUnavailable, match="is not an SQLite database: name another file"):
            await connect(f"sqlite:///{file}", create=create).open()
    assert file.read_text(encoding="utf-8") == "not a database\n" * 1000


async def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=str(tmp_path)):
        await connect(f"sqlite:///{tmp_path}").open()


async def test_a_server_that_does_not_answer_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/.*cannot connect; nothing changed"):
        await connect("postgresql://user:hunter2@127.0.0.1:1/database").open()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:hunter2@127.0.0.1:port/database",
        "postgresql://user:hunter2@[127.0.0.1/database",
        "postgresql://user:hunter2@127.0.0.1:1/database?sslmode=sometimes",
    ],
)
async def test_an_address_that_the_driver_does_not_read_is_one_of_the_projects_errors(url: str) -> None:
    with pytest.raises(TicklerError):
        await connect(url).open()


async def test_a_parameter_that_postgresql_does_not_know_is_one_of_the_projects_errors(postgres_url: str) -> None:
    with pytest.raises(TicklerError, match="nonsense"):
        await connect(f"{postgres_url}&nonsense=1").open()


# Passwords.

WITH_PASSWORDS = [
    "{scheme}://user:hunter2@127.0.0.1:1/database",
    "{scheme}://:hunter2@127.0.0.1:1/database",
    "{scheme}://user:x@hunter2@127.0.0.1:1/database",
    "{scheme}://user:%78hunter2%40@127.0.0.1:1/database",
    "{scheme}://user:hunter2[@127.0.0.1:1/database",
    "{scheme}://user:x#hunter2@127.0.0.1:1/database",
    "{scheme}://user:x?hunter2@127.0.0.1:1/database",
    "{scheme}://user:x/hunter2@127.0.0.1:1/database",
    "{scheme}://127.0.0.1:1/database?user=user&password=hunter2",
    "{scheme}://127.0.0.1:1/database?sslpassword=hunter2",
]


@pytest.mark.parametrize("url", [url.format(scheme="mysql") for url in WITH_PASSWORDS])
def test_a_password_is_not_shown_in_the_error_about_its_url(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        connect(url)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", [url.format(scheme="postgresql") for url in WITH_PASSWORDS])
async def test_a_password_is_not_shown_when_the_store_cannot_be_opened(url: str) -> None:
    with pytest.raises(Exception) as refused:  # noqa: PT011  # whatever it is
        await connect(url).open()
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", [url.format(scheme="postgresql") for url in WITH_PASSWORDS[:4]])
def test_a_password_is_not_shown_in_what_is_printed_of_a_store(url: str) -> None:
    t = connect(url)
    shown = [repr(t), repr(connect_sync(url)), repr(t.schedules), repr(t.index), repr(t.records), parse_url(url).text]
    assert "hunter2" not in "".join(shown)
    assert "127.0.0.1:1/database" in parse_url(url).text


@pytest.mark.parametrize("url", [url.format(scheme="postgresql") for url in WITH_PASSWORDS[:4]])
def test_a_password_is_not_shown_in_what_is_printed_of_a_url(url: str) -> None:
    """Stores of other people's get it, print it and log it."""
    assert "hunter2" not in repr(parse_url(url))


async def test_a_password_is_not_shown_in_the_advice_to_migrate(postgres_url: str) -> None:
    url = postgres_url.replace("postgres:@", "postgres:hunter2@")
    assert "hunter2" in url
    with pytest.raises(SchemaMissing) as missing:
        await connect(url, create=False).open()
    assert "hunter2" not in str(missing.value)


# Pools.


async def test_a_pool_of_the_callers_is_used_and_left_open(pool: asyncpg.Pool, postgres_url: str) -> None:
    schema = parse_qs(urlsplit(postgres_url).query)["schema"][0]
    async with connect(pool=pool, schema=schema) as t:
        await t.schedules.put(DIGEST)
    assert await pool.fetchval(f"SELECT count(*) FROM {schema}.tickler_schedules") == 1
    async with connect(postgres_url, create=False) as t:
        assert await t.schedules.get("u1", "digest") is not None


async def test_a_worker_on_a_pool_has_longer_leases_since_nobody_keeps_them(pool: asyncpg.Pool, postgres_url: str) -> None:
    schema = parse_qs(urlsplit(postgres_url).query)["schema"][0]
    begun, ends = asyncio.Event(), asyncio.Event()
    for made, lease_s in ((connect(postgres_url), 10), (connect(pool=pool, schema=schema), 60)):
        async with made as t:

            @t.handler("slow")
            async def slow(delivery: Delivery) -> None:
                begun.set()
                await ends.wait()

            begun.clear()
            ends.clear()
            await t.schedules.put(Schedule(owner="u1", key="slow", when="@daily", target=PythonTarget("slow")))
            await t.trigger("u1", "slow")
            running = asyncio.create_task(t.run())
            await begun.wait()
            (fire,) = (await t.fires.list()).items
            ends.set()
            t.stop()
            await running
            assert fire.lease_token is not None
            assert fire.deliver_after == fire.lease_token + lease_s * 1000


async def test_url_and_pool_exclude_each_other_and_one_is_needed(pool: asyncpg.Pool) -> None:
    with pytest.raises(InvalidInput, match=r"^connect: pass either a store's URL.* or pool=$"):
        connect("sqlite://", pool=pool)
    with pytest.raises(InvalidInput, match=r"^connect: pass either a store's URL"):
        connect()


@pytest.mark.parametrize("pool", ["postgresql://localhost/x", 5, object(), sqlite3], ids=["text", "number", "object", "module"])
def test_a_pool_that_is_none_is_refused(pool: object) -> None:
    with pytest.raises(InvalidInput, match=r"^pool= got a .*; pass an asyncpg pool"):
        connect(pool=pool)


@pytest.mark.parametrize("schema", ["", "a b", 'a"b', "1a", "x" * 64, "a;b", "ä"])
async def test_a_pools_schema_is_a_plain_name(pool: asyncpg.Pool, schema: str) -> None:
    with pytest.raises(InvalidInput, match=r"^schema: "):
        connect(pool=pool, schema=schema)


async def test_a_schema_beside_a_url_is_used_or_refused(postgres_server: PostgresServer, postgres_url: str) -> None:
    """A field nobody reads would put the tables into another schema than the caller says."""
    schema = parse_qs(urlsplit(postgres_url).query)["schema"][0]
    try:
        t = connect(postgres_server.dsn, schema=schema, create=False)
    except InvalidInput:
        return
    with pytest.raises(SchemaMissing):
        await t.open()
    async with connect(postgres_url):
        pass
    async with t:
        assert await t.index.count() == 0


# Other stores.


@pytest.mark.parametrize(
    "call",
    [
        'tickler.connect("postgresql://localhost/x")',
        'tickler.connect_sync("postgres://localhost/x")',
        "tickler.connect(pool=object())",
    ],
)
def test_without_asyncpg_the_error_names_the_extra_to_install(call: str) -> None:
    (said,) = python(WITHOUT_ASYNCPG.format(call=call))
    assert "needs the package asyncpg: install it with `pip install 'ticklerfile[postgres]'`" in said


def test_another_package_brings_a_store_by_its_entry_point(tmp_path: Path) -> None:
    (tmp_path / "shelf_store.py").write_text(SHELF_MODULE, encoding="utf-8")
    info = tmp_path / "shelf-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[tickler.stores]\nshelf = shelf_store:open_store\n", encoding="utf-8")
    asked, count, said = python(USE_SHELF, tmp_path)
    assert asked == "shelf somewhere/else {'depth': '3'}"
    assert count == "1"
    assert "'cupboard://' has an unknown scheme: use one of" in said
    assert "shelf://" in said


# Opening and closing.


async def test_without_tables_and_without_create_the_remedy_is_named(lasting_url: str) -> None:
    t = connect(lasting_url, create=False)
    with pytest.raises(SchemaMissing, match=r"has no Tickler tables: run `tickler migrate --store .*create=1 in its URL"):
        await t.open()
    with pytest.raises(StoreUnavailable):
        await t.index.count()
    async with connect(lasting_url):
        pass
    async with t:
        assert await t.index.count() == 0


async def test_without_create_no_file_is_made(tmp_path: Path) -> None:
    """A mistyped path should not look like an empty store tomorrow."""
    with pytest.raises(TicklerError):
        await connect(f"sqlite:///{tmp_path}/mistyped.db", create=False).open()
    assert list(tmp_path.iterdir()) == []


async def test_use_before_open_and_after_close_says_how_to_open(lasting_url: str) -> None:
    t = connect(lasting_url)

    async def is_refused() -> None:
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: t.index.count(),
            lambda: t.index.claim_due(NOW_MS),
            lambda: t.index.upsert(IndexRow("u1", "a", HOURLY, NOW_MS)),
            lambda: t.schedules.put(DIGEST),
            lambda: t.schedules.get("u1", "digest"),
            lambda: t.schedules.list(),
            lambda: t.records.put("k", "a", 1),
            lambda: t.records.get("k", "a"),
        ]
        for call in calls:
            with pytest.raises(StoreUnavailable, match=r"is closed: use it inside `async with`, or call open"):
                await call()

    await is_refused()
    async with t:
        await t.schedules.put(DIGEST)
    await is_refused()


async def test_a_closed_tickler_can_be_opened_again(lasting_url: str) -> None:
    t = connect(lasting_url, clock=ManualClock(NOW_MS))
    for n in range(3):
        async with t as opened:
            assert opened is t
            assert len((await t.schedules.list()).items) == n
            await t.schedules.put(Schedule(owner="u1", key=f"k{n}", when=HOURLY))
    await t.close()
    await t.close()


@pytest.mark.parametrize("url", ["memory://", "sqlite://"])
async def test_what_is_in_memory_is_forgotten_when_it_is_closed(url: str) -> None:
    t = connect(url)
    async with t:
        await t.schedules.put(DIGEST)
    async with t:
        assert (await t.schedules.list()).items == []
        assert await t.index.count() == 0


async def test_opening_what_is_open_loses_nothing_and_leaves_nothing_behind(any_url: str) -> None:
    before = set(threading.enumerate())
    t = connect(any_url, clock=ManualClock(NOW_MS))
    await t.open()
    await t.schedules.put(DIGEST)
    await t.open()
    assert await t.schedules.get("u1", "digest") is not None
    await t.close()
    assert _still_running(before) == []


async def test_opening_what_is_open_keeps_what_is_in_memory() -> None:
    async with connect("sqlite://", clock=ManualClock(NOW_MS)) as t:
        await t.schedules.put(DIGEST)
        await t.open()
        assert await t.schedules.get("u1", "digest") is not None


async def test_no_thread_is_left_behind(sqlite_url: str, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    async with connect(sqlite_url) as t:
        await t.schedules.put(DIGEST)
    with pytest.raises(StoreUnavailable):
        await connect(f"sqlite:///{tmp_path}/no/such/t.db").open()
    with pytest.raises(TicklerError):
        await connect(f"sqlite:///{tmp_path}/other.db", create=False).open()
    assert _still_running(before) == []


async def test_the_stores_clock_is_followed_and_a_manual_one_is_left_alone(postgres_url: str) -> None:
    manual, system = ManualClock(NOW_MS), SystemClock()
    system.offset_ms = 1_000_000_000
    async with connect(postgres_url, clock=manual), connect(postgres_url, clock=system):
        assert manual.now_ms() == NOW_MS
        assert abs(system.offset_ms) < 60_000


def test_every_store_says_how_it_differs() -> None:
    differences = {url: connect(url).capabilities for url in ("memory://", "sqlite://", "sqlite:///t.db", "postgresql://h/d")}
    assert [one.shared for one in differences.values()] == [False, False, True, True]
    assert [one.joins_transactions for one in differences.values()] == [False, False, True, True]


# What opening records and restores.


async def recorded_tzdata(t: Tickler) -> object:
    record = await t.records.get("store", "tzdata")
    assert record is not None
    return record.value


async def test_a_new_store_records_the_time_zone_database_it_is_used_with(any_url: str) -> None:
    async with connect(any_url) as t:
        assert await recorded_tzdata(t) == {"version": tzdata_version()}


@pytest.mark.parametrize(
    ("known", "then"), [("1999a", tzdata_version()), (tzdata_version(), tzdata_version()), ("2999z", "2999z")]
)
async def test_the_recorded_time_zone_database_is_raised_and_never_lowered(lasting_url: str, known: str, then: str) -> None:
    async with connect(lasting_url) as t:
        await t._store.records.put("store", "tzdata", b'{"version": "%s"}' % known.encode(), now_ms=NOW_MS)
        before = await t.records.get("store", "tzdata")
    async with connect(lasting_url) as t:
        assert await recorded_tzdata(t) == {"version": then}
        after = await t.records.get("store", "tzdata")
    assert before is not None
    assert after is not None
    assert (after.version > before.version) == (known != then), "what stays the same is not written"


async def test_a_machine_that_does_not_know_its_version_does_not_count_as_the_newest(sqlite_url: str, tmp_path: Path) -> None:
    """A zone folder without a version file, as some images have: its version reads 'unknown (…)', which sorts after any year."""
    zones = tmp_path / "zones"
    zones.mkdir()
    utc = b"TZif2" + bytes(15) + b"".join(n.to_bytes(4) for n in (0, 0, 0, 0, 1, 4)) + bytes(6) + b"UTC\0"
    (zones / "UTC").write_bytes(
        utc + b"TZif2" + bytes(15) + b"".join(n.to_bytes(4) for n in (0, 0, 0, 0, 1, 4)) + bytes(6) + b"UTC\0\nUTC0\n"
    )
    code = f"""
import asyncio, tickler
from tickler.when import tzdata_version
async def main():
    async with tickler.connect({sqlite_url!r}) as t:
        print(tzdata_version())
asyncio.run(main())
"""
    (said,) = python(code, PYTHONTZPATH=str(zones))
    assert said.startswith("unknown")
    async with connect(sqlite_url) as t:
        assert await recorded_tzdata(t) == {"version": tzdata_version()}


async def test_rows_that_were_set_aside_and_read_again_are_restored_on_open(lasting_url: str) -> None:
    rows = [IndexRow("u1", key, HOURLY, NOW_MS - 5) for key in ("bad", "worse")]
    async with connect(lasting_url, clock=ManualClock(NOW_MS)) as t:
        await t.index.upsert_many(rows)
        await execute(lasting_url, "UPDATE tickler_index SET when_text = 'never'")
        assert await t.index.claim_due(NOW_MS) == []
        assert [aside.key for aside in await t.index.set_aside()] == ["bad", "worse"]
        await execute(lasting_url, "UPDATE tickler_aside SET when_text = '0 * * * *' WHERE key = 'bad'")
    async with connect(lasting_url, clock=ManualClock(NOW_MS)) as t:
        assert [aside.key for aside in await t.index.set_aside()] == ["worse"]
        assert await t.index.claim_due(NOW_MS) == [rows[0]]


def _still_running(before: set[threading.Thread]) -> list[str]:
    """Threads that do not end by themselves."""
    others = set(threading.enumerate()) - before
    for thread in others:
        thread.join(2)
    return [thread.name for thread in others if thread.is_alive()]
