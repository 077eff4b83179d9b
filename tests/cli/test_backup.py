"""`tickler backup`, run as people run it: while a writer writes and a worker works, and back again."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import tickler
from tickler import Cron, IndexRow, InvalidInput, PythonTarget, Schedule, StoreUnavailable
from tickler.connect import store_for_url
from tickler.records.worker_status import WorkerReport, report
from tickler.stores.optional import BacksUp, backed_up_to_files
from tickler.stores.sqlite import backup as sqlite_backup

from .preloaded import run_tickler

HANDLERS = """
def register(tickler):
    tickler.handler("works")(lambda fire: "done")
"""


def stored(url: str) -> BacksUp:
    return backed_up_to_files(store_for_url(url), url)


def integrity(file: Path) -> str:
    with closing(sqlite3.connect(file)) as connection:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def filled(url: str, schedules: int = 50) -> None:
    async with tickler.connect(url) as t:
        await t.schedules.put_many(
            Schedule(owner="u1", key=f"k{n}", when="@hourly", target=PythonTarget("works"), payload="x" * 1000)
            for n in range(schedules)
        )
        await t.trigger("u1", "k0")


async def test_a_backup_is_whole_while_a_writer_writes_and_a_worker_works(tmp_path: Path, sqlite_url: str) -> None:
    """Of pairs that are written together, no backup has one alone; and what was due is delivered meanwhile."""
    (tmp_path / "our_handlers.py").write_text(HANDLERS)
    await filled(sqlite_url, 2000)
    work = [sys.executable, "-m", "tickler", "work", "--store", sqlite_url, "--setup", "our_handlers:register"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(work, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL) as worker:
        try:
            async with tickler.connect(sqlite_url) as t:
                stop = asyncio.Event()
                writing = asyncio.create_task(_write_pairs(t, stop))
                counts = [await asyncio.to_thread(_back_up, tmp_path, sqlite_url, n) for n in range(3)]
                stop.set()
                pairs = await writing
                until = time.monotonic() + 60
                while (await t.fires.list(state="open")).items and time.monotonic() < until:
                    await asyncio.sleep(0.05)
                assert (await t.fires.list(state="open")).items == []
            assert worker.poll() is None
        finally:
            worker.send_signal(signal.SIGTERM)
    assert counts == sorted(counts)
    assert 0 < counts[-1] <= pairs
    assert len(set(counts)) > 1, "nothing was written meanwhile"


async def _write_pairs(t: tickler.Tickler, stop: asyncio.Event) -> int:
    pairs = 0
    while not stop.is_set():
        await t.schedules.put_many(
            Schedule(owner=f"pair{pairs}", key=key, when="@daily", target=PythonTarget("works")) for key in ("a", "b")
        )
        await t.trigger(f"pair{pairs}", "a")
        pairs += 1
    return pairs


def _back_up(folder: Path, url: str, number: int) -> int:
    """How many pairs there are in it."""
    file = folder / f"backup{number}.db"
    done = run_tickler("backup", str(file), "--store", url, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    answer = msgspec.json.decode(done.stdout)
    assert (answer["file"], answer["bytes"]) == (str(file), file.stat().st_size)
    assert integrity(file) == "ok"
    with closing(sqlite3.connect(file)) as connection:
        (schedules,) = connection.execute("SELECT count(*) FROM tickler_schedules").fetchone()
        (rows,) = connection.execute("SELECT count(*) FROM tickler_index").fetchone()
        pairs = connection.execute("SELECT owner, count(*) FROM tickler_schedules WHERE owner LIKE 'pair%' GROUP BY 1").fetchall()
    assert answer["counts"]["schedules"] == schedules == rows
    assert {count for _, count in pairs} <= {2}
    return len(pairs)


async def test_a_backup_opens_as_a_store_with_everything_in_it(tmp_path: Path, sqlite_url: str) -> None:
    await filled(sqlite_url)
    async with tickler.connect(sqlite_url) as t:
        await t.index.upsert(IndexRow("u2", "row", Cron("0 9 * * *"), t.now_ms()))
        done = run_tickler("backup", "b.db", folder=tmp_path, TICKLER_STORE=sqlite_url)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("wrote b.db, ")
        assert ": 50 schedules, 51 index rows, 1 fire, 0 history entries, " in done.stdout
        async with tickler.connect(f"sqlite:///{tmp_path}/b.db", create=False) as copy:
            assert (await copy.schedules.list(limit=100)).items == (await t.schedules.list(limit=100)).items
            assert (await copy.fires.list()).items == (await t.fires.list()).items
            assert await copy.index.count() == 51
    assert names(tmp_path) == ["b.db", "tickler.db"]


async def test_a_file_that_is_there_is_replaced_on_demand_only(tmp_path: Path, sqlite_url: str) -> None:
    await filled(sqlite_url)
    (tmp_path / "b.db").write_text("precious")
    done = run_tickler("backup", "b.db", "--store", sqlite_url, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tickler: b.db already exists: name another file, or pass --force to replace it\n"
    assert (tmp_path / "b.db").read_text() == "precious"
    assert run_tickler("backup", "b.db", "--store", sqlite_url, "--force", folder=tmp_path).returncode == 0
    assert integrity(tmp_path / "b.db") == "ok"


async def test_a_backup_is_readable_to_whom_the_store_is(tmp_path: Path, sqlite_url: str) -> None:
    await filled(sqlite_url)
    (tmp_path / "tickler.db").chmod(0o640)
    await stored(sqlite_url).backup(tmp_path / "b.db")
    assert stat.S_IMODE((tmp_path / "b.db").stat().st_mode) == 0o640


async def test_what_was_begun_leaves_nothing_behind_when_it_fails(
    tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(sqlite_url)
    (tmp_path / "b.db").write_text("precious")
    monkeypatch.setattr(sqlite_backup, "PAGES_A_STEP", 1)

    def stumble(activity: str, done: int, total: int | None) -> None:
        assert (tmp_path / f".b.db.{os.getpid()}.partial").exists()
        if done > 5:
            raise StoreUnavailable("the disk is full")

    with pytest.raises(StoreUnavailable, match="the disk is full"):
        await stored(sqlite_url).backup(tmp_path / "b.db", stumble)
    assert names(tmp_path) == ["b.db", "tickler.db"]
    assert (tmp_path / "b.db").read_text() == "precious"


async def test_one_that_nobody_waits_for_any_more_is_given_up(
    tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(sqlite_url)
    monkeypatch.setattr(sqlite_backup, "PAGES_A_STEP", 1)
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def slowly(activity: str, done: int, total: int | None) -> None:
        loop.call_soon_threadsafe(begun.set)
        time.sleep(0.02)

    task = asyncio.create_task(stored(sqlite_url).backup(tmp_path / "b.db", slowly))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    until = time.monotonic() + 10
    while len(names(tmp_path)) > 1 and time.monotonic() < until:
        await asyncio.sleep(0.02)
    assert names(tmp_path) == ["tickler.db"]


async def test_writes_meanwhile_neither_hold_it_up_nor_get_into_it(
    tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite begins again when another connection writes, unless it keeps to what it read first."""
    await filled(sqlite_url)
    monkeypatch.setattr(sqlite_backup, "PAGES_A_STEP", 4)
    steps: list[int] = []

    def write(activity: str, done: int, total: int | None) -> None:
        steps.append(done)
        with closing(sqlite3.connect(tmp_path / "tickler.db", isolation_level=None)) as connection:
            connection.execute("DELETE FROM tickler_fires")
            connection.execute("UPDATE tickler_schedules SET version = version + 1")

    counts = await stored(sqlite_url).backup(tmp_path / "b.db", write)
    assert len(steps) > 5
    assert steps == sorted(set(steps)), "it never began again"
    assert counts["fires"] == 1
    with closing(sqlite3.connect(tmp_path / "b.db")) as connection:
        assert connection.execute("SELECT count(*), max(version) FROM tickler_schedules").fetchone() == (50, 1)


@pytest.mark.parametrize(
    ("file", "said"),
    [("tickler.db", "is the store itself"), ("nowhere/b.db", "there is no folder")],
)
async def test_a_file_that_cannot_be_is_refused(tmp_path: Path, sqlite_url: str, file: str, said: str) -> None:
    await filled(sqlite_url)
    with pytest.raises(InvalidInput, match=said):
        await stored(sqlite_url).backup(tmp_path / file)
    assert integrity(tmp_path / "tickler.db") == "ok"
    async with tickler.connect(sqlite_url) as t:
        assert await t.index.count() == 50


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run_tickler("backup", "b.db", "--store", "sqlite:///mistyped.db", folder=tmp_path)
    assert (done.returncode, "there is no such file to back up" in done.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "tool", "way_back"),
    [
        ("postgresql://nobody@localhost:1/none?schema=ours", "pg_dump --schema=", "pg_restore"),
        ("dynamodb://table?region=eu-west-1", "point-in-time recovery", "restore-table-to-point-in-time"),
        ("memory://", "sqlite:///", "sqlite:///"),
        ("sqlite://", "sqlite:///", "sqlite:///"),
    ],
)
async def test_other_engines_are_backed_up_with_their_own_tools(tmp_path: Path, url: str, tool: str, way_back: str) -> None:
    with pytest.raises(InvalidInput, match=f"{tool}.*tickler copy"):
        await stored(url).backup(tmp_path / "b.db")
    with pytest.raises(InvalidInput, match=f"{way_back}.*tickler copy"):
        await stored(url).restore(tmp_path / "b.db")


def test_the_tool_to_use_is_said_in_a_line(tmp_path: Path) -> None:
    url = "postgresql://nobody:secret@localhost:1/none?schema=ours"
    done = run_tickler("backup", "b.db", "--store", url, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert 'use `pg_dump --schema="ours"`' in done.stderr
    assert "secret" not in done.stderr
    assert list(tmp_path.iterdir()) == []


# And back.


async def test_a_store_is_restored_from_a_backup(tmp_path: Path, sqlite_url: str) -> None:
    await filled(sqlite_url)
    assert run_tickler("backup", "b.db", "--store", sqlite_url, folder=tmp_path).returncode == 0
    async with tickler.connect(sqlite_url) as t:
        before = (await t.schedules.list(limit=100)).items
        await t.schedules.delete_all("u1")
        await t.schedules.put(Schedule(owner="u1", key="later", when="@hourly"))
    done = run_tickler("backup", "--restore", "b.db", "--store", sqlite_url, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "has schedules, which would be lost: pass --force" in done.stderr
    async with tickler.connect(sqlite_url) as reader:  # who is connected sees it at once
        done = run_tickler("backup", "--restore", "b.db", "--store", sqlite_url, "--force", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"restored {sqlite_url} from b.db: 50 schedules" in done.stdout
        assert (await reader.schedules.list(limit=100)).items == before
        assert len((await reader.fires.list()).items) == 1
    assert integrity(tmp_path / "tickler.db") == "ok"


async def test_a_backup_is_restored_where_there_is_no_store(tmp_path: Path, sqlite_url: str) -> None:
    await filled(sqlite_url)
    await stored(sqlite_url).backup(tmp_path / "b.db")
    done = run_tickler("backup", "--restore", "b.db", "--store", "sqlite:///new.db", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(done.stdout)["counts"]["schedules"] == 50
    async with tickler.connect(f"sqlite:///{tmp_path}/new.db", create=False) as t:
        assert await t.index.count() == 50


async def test_a_store_that_workers_use_is_not_restored(tmp_path: Path, sqlite_url: str) -> None:
    await filled(sqlite_url)
    await stored(sqlite_url).backup(tmp_path / "b.db")
    async with tickler.connect(sqlite_url) as t:
        await report(t.store.records, WorkerReport(name="host:7", doing="working", started_at=1, seen_at=t.now_ms()))
    done = run_tickler("backup", "--restore", "b.db", "--store", sqlite_url, "--force", folder=tmp_path)
    assert (done.returncode, "1 worker is running" in done.stderr) == (1, True)


@pytest.mark.parametrize("kind", ["missing", "text", "another's", "damaged"])
async def test_a_file_that_is_no_backup_is_refused_and_nothing_is_changed(tmp_path: Path, sqlite_url: str, kind: str) -> None:
    await filled(sqlite_url)
    file = tmp_path / "b.db"
    if kind == "text":
        file.write_text("not a database at all" * 100)
    elif kind == "another's":
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE other (a)")
    elif kind == "damaged":
        await stored(sqlite_url).backup(file)
        whole = bytearray(file.read_bytes())
        whole[40_000:120_000] = b"\x7f" * 80_000
        file.write_bytes(whole)
    with pytest.raises((InvalidInput, StoreUnavailable), match=re.escape(str(file))):
        await stored(sqlite_url).restore(file)
    assert integrity(tmp_path / "tickler.db") == "ok"
    async with tickler.connect(sqlite_url, create=False) as t:
        assert await t.index.count() == 50
