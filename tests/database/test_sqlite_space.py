"""What an SQLite store takes beside its data, and what happens when the disk is full."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tickler import Cron, InvalidInput, Schedule, StoreUnavailable, Tickler, connect
from tickler.database.sqlite.connection import Connection

MB = 1024 * 1024
HOURLY = Cron("0 * * * *")


def schedule(key: str, payload: object = None) -> Schedule:
    return Schedule(owner="u1", key=key, when=HOURLY, payload=payload)


def wal_of(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size


async def pragma(t: Tickler, name: str) -> int:
    connection: Connection = t.store._connection  # type: ignore[attr-defined]
    found = await connection.read(lambda raw: raw.execute(f"PRAGMA {name}").fetchone())
    return int(found[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tickler.db"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"NOT TESTED on a real small disk: {getattr(error, 'stderr', '') or error}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


# What the URL says.


async def test_the_url_says_how_much_the_cache_and_the_log_may_take(path: Path) -> None:
    async with connect(f"sqlite:///{path}?cache_mb=8&wal_mb=2") as t:
        assert await pragma(t, "cache_size") == -8 * 1024
        assert await pragma(t, "wal_autocheckpoint") * await pragma(t, "page_size") == 2 * MB
        assert await pragma(t, "journal_size_limit") == 2 * MB


@pytest.mark.parametrize("parameter", ["cache_mb=0", "cache_mb=-1", "cache_mb=1.5", "wal_mb=x", "wal_mb=65537", "wal_mb="])
def test_a_limit_that_is_none_is_refused(parameter: str) -> None:
    with pytest.raises(InvalidInput, match=r"is not a whole number from 1 to 65536"):
        connect(f"sqlite:///tickler.db?{parameter}")


async def test_on_a_large_disk_the_limits_are_as_they_were_measured(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=640 * MB))
    async with connect(f"sqlite:///{path}") as t:
        assert (await pragma(t, "cache_size"), await pragma(t, "wal_autocheckpoint")) == (-262_144, 20_480)


async def test_a_log_that_grew_shrinks_to_its_limit(path: Path) -> None:
    async with connect(f"sqlite:///{path}?wal_mb=1") as t:
        await t.schedules.put_many([schedule(f"k{n}", "x" * 200_000) for n in range(12)])
        assert wal_of(path) > 2 * MB
        await t.schedules.put(schedule("a"))
        assert wal_of(path) <= MB


# A full disk.


async def test_a_small_disk_holds_data_and_not_only_its_log(small_disk: Path) -> None:
    async with connect(f"sqlite:///{small_disk / 'tickler.db'}") as t:
        for n in range(200):
            await t.schedules.put(schedule(f"k{n}", "x" * 1000))
        assert await t.index.count() == 200


async def test_a_log_that_fills_the_disk_is_emptied_and_the_write_done(small_disk: Path) -> None:
    path = small_disk / "tickler.db"
    async with connect(f"sqlite:///{path}") as t:
        await t.schedules.put(schedule("a", 0))
    async with connect(f"sqlite:///{path}?wal_mb=64") as t:
        largest = 0
        for n in range(1, 2000):
            await t.schedules.put(schedule("a", n))
            largest = max(largest, wal_of(path))
            if wal_of(path) < largest:
                break
        assert largest > 2 * MB, "it has filled the disk"
        assert wal_of(path) < MB
        stored = await t.schedules.get("u1", "a")
        assert stored is not None
        assert stored.payload == n


async def test_a_disk_that_stays_full_is_named_and_what_was_there_stays(small_disk: Path) -> None:
    path = small_disk / "tickler.db"
    async with connect(f"sqlite:///{path}") as t:
        await t.schedules.put(schedule("a"))
        ballast = small_disk / "ballast"
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(b"x" * 4 * MB)
        with pytest.raises(StoreUnavailable, match="the disk is full; nothing changed: make room"):
            await t.schedules.put_many([schedule(f"k{n}", "x" * 200_000) for n in range(8)])
        assert [stored.key for stored in (await t.schedules.list()).items] == ["a"]
        ballast.unlink()
        await t.schedules.put(schedule("b"))
        assert [stored.key for stored in (await t.schedules.list()).items] == ["a", "b"]


async def test_what_fails_for_want_of_room_is_tried_once_more_and_alone(path: Path) -> None:
    """By a limit of SQLite's own, which is as full as a disk; raised after the first time."""
    tries = 0
    connection = Connection(str(path), "sqlite:///tickler.db", 0.2)
    await connection.open()

    def grow(raw: sqlite3.Connection) -> int:
        nonlocal tries
        tries += 1
        raw.execute(f"PRAGMA max_page_count = {4 if tries == 1 else 1000}")
        raw.execute("INSERT INTO t VALUES (zeroblob(100000))")
        return tries

    await connection.write(lambda raw: raw.execute("CREATE TABLE t (x)"))
    statements: list[str] = []
    await connection.read(lambda raw: raw.set_trace_callback(statements.append))
    assert await connection.write(grow) == 2
    assert [text for text in statements if "checkpoint" in text] == ["PRAGMA wal_checkpoint(TRUNCATE)"]
    assert await connection.read(lambda raw: raw.execute("SELECT count(*) FROM t").fetchone()) == (1,)
    assert await connection.read(lambda raw: raw.execute("PRAGMA busy_timeout").fetchone()) == (200,)
    await connection.close()


# A log that cannot shrink.


async def test_the_doctor_names_a_log_that_a_long_reader_keeps_from_shrinking(path: Path) -> None:
    async with connect(f"sqlite:///{path}?wal_mb=1") as t:
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tickler_schedules").fetchone()
        for n in range(12):
            await t.schedules.put(schedule(f"k{n}", "x" * 200_000))
        (found,) = [each for each in (await t.doctor()).findings if each.check == "storage"]
        assert found.severity == "warning"
        assert "should have 1, and grows" in found.says
        assert f"fuser -v {path}" in found.remedy
        reader.close()
        assert "storage" not in [each.check for each in (await t.doctor()).findings], "the next write starts it over"
        await t.schedules.put(schedule("a"))
        assert wal_of(path) <= MB


async def test_one_large_write_is_no_log_that_cannot_shrink(path: Path) -> None:
    async with connect(f"sqlite:///{path}?wal_mb=1") as t:
        await t.schedules.put_many([schedule(f"k{n}", "x" * 200_000) for n in range(12)])
        assert wal_of(path) > 2 * MB
        assert "storage" not in [each.check for each in (await t.doctor()).findings]
