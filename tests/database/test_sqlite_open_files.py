"""Files of an open SQLite store that are deleted, moved or replaced: no write is acknowledged that would be lost."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from server.served import serving
from under_fire.processes import until

from tickler import Cron, Delivery, ManualClock, PythonTarget, Schedule, StoreUnavailable, Tickler, connect
from tickler.connect import store_for_url
from tickler.database.sqlite import open_files
from tickler.stores.optional import BacksUp

NOW_MS = 1_921_406_400_000
HOURLY = Cron("0 * * * *")


def schedule(key: str) -> Schedule:
    return Schedule(owner="u1", key=key, when=HOURLY, target=PythonTarget("work"))


async def keys(t: Tickler) -> list[str]:
    return [stored.key for stored in (await t.schedules.list()).items]


def clash(path: Path) -> None:
    """Another database where this one was."""
    path.rename(path.with_name("former.db"))
    sqlite3.connect(path).close()
    path.touch()


@pytest.fixture(autouse=True)
def every_call_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files, "CHECK_INTERVAL_S", 0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tickler.db"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def t(path: Path, clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect(f"sqlite:///{path}", clock=clock) as tickler:
        await tickler.schedules.put(schedule("before"))
        yield tickler


# What is refused.


async def test_nothing_is_written_or_read_once_the_file_was_deleted(t: Tickler, path: Path) -> None:
    path.unlink()
    with pytest.raises(StoreUnavailable, match=r"tickler\.db was deleted or moved away .* restore a backup"):
        await t.schedules.put(schedule("after"))
    with pytest.raises(StoreUnavailable, match="deleted or moved away"):
        await t.index.claim_due(NOW_MS + 3_600_000)
    with pytest.raises(StoreUnavailable, match="deleted or moved away"):
        await t.index.next_due()
    with pytest.raises(StoreUnavailable, match="deleted or moved away"):
        await t.doctor()


async def test_a_commit_is_refused_at_once_and_not_only_a_second_later(
    t: Tickler, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "CHECK_INTERVAL_S", 3600.0)
    path.unlink()
    with pytest.raises(StoreUnavailable, match="deleted or moved away"):
        await t.schedules.put(schedule("after"))


async def test_nothing_is_written_once_another_file_has_its_name(t: Tickler, path: Path, tmp_path: Path) -> None:
    clash(path)
    with pytest.raises(StoreUnavailable, match=r"replaced by another file .* remove the -wal"):
        await t.schedules.put(schedule("after"))
    assert isinstance(t.store, BacksUp)
    with pytest.raises(StoreUnavailable, match="replaced by another file"):
        await t.store.backup(tmp_path / "backup.db")


async def test_a_write_that_joins_a_transaction_is_refused_too(t: Tickler, path: Path) -> None:
    clash(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN")
    with pytest.raises(StoreUnavailable, match="replaced by another file"):
        await t.schedules.put(schedule("after"), using=other)
    other.close()


@pytest.mark.parametrize("kind", ["wal", "shm"])
async def test_without_its_companions_nothing_is_written_and_an_orderly_stop_saves_all(path: Path, kind: str) -> None:
    async with connect(f"sqlite:///{path}") as t:
        await t.schedules.put(schedule("before"))
        path.with_name(f"{path.name}-{kind}").unlink()
        with pytest.raises(StoreUnavailable, match=rf"-{kind} was deleted or moved away .* none with SIGKILL"):
            await t.schedules.put(schedule("after"))
        with pytest.raises(StoreUnavailable):
            await keys(t)
    async with connect(f"sqlite:///{path}") as t:
        assert await keys(t) == ["before"]


async def test_what_a_deleted_file_held_is_still_there_while_its_process_runs(t: Tickler, path: Path, tmp_path: Path) -> None:
    """As the guide says how to save it."""
    open_now = Path(f"/proc/{os.getpid()}/fd")
    if not open_now.is_dir():
        pytest.skip("NOT TESTED: there is no /proc here")
    path.unlink()
    descriptors = [link for link in open_now.iterdir() if os.path.lexists(link) and os.readlink(link) == f"{path} (deleted)"]
    shutil.copy(descriptors[0], tmp_path / "saved.db")
    shutil.copy(f"{path}-wal", tmp_path / "saved.db-wal")
    async with connect(f"sqlite:///{tmp_path / 'saved.db'}") as saved:
        assert await keys(saved) == ["before"]


# What goes on.


async def test_a_file_that_is_moved_back_is_used_again_and_has_lost_nothing(t: Tickler, path: Path) -> None:
    away = path.with_name("away.db")
    path.rename(away)
    with pytest.raises(StoreUnavailable):
        await t.schedules.put(schedule("meanwhile"))
    away.rename(path)
    await t.schedules.put(schedule("after"))
    assert await keys(t) == ["after", "before"]


async def test_a_link_and_a_relative_path_give_no_false_alarm(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(Path("real", "tickler.db"))
    monkeypatch.chdir(tmp_path)
    async with connect("sqlite:///link.db") as t:
        await t.schedules.put(schedule("a"))
        monkeypatch.chdir("/")
        await t.schedules.put(schedule("b"))
        assert await keys(t) == ["a", "b"]
        (tmp_path / "real" / "tickler.db-wal").unlink()
        with pytest.raises(StoreUnavailable, match=r"tickler\.db-wal was deleted"):
            await t.schedules.put(schedule("c"))


async def test_a_backup_and_its_restore_beside_a_running_store_give_no_false_alarm(
    t: Tickler, path: Path, tmp_path: Path
) -> None:
    other = store_for_url(f"sqlite:///{path}")
    assert isinstance(other, BacksUp)
    await other.backup(tmp_path / "backup.db")
    await t.schedules.put(schedule("later"))
    await other.restore(tmp_path / "backup.db")
    assert await keys(t) == ["before"]
    await t.schedules.put(schedule("after"))
    assert await keys(t) == ["after", "before"]


async def test_a_process_that_may_not_look_any_more_goes_on(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(open_files, "_identity", refused)
    await t.schedules.put(schedule("after"))
    assert await keys(t) == ["after", "before"]


async def test_a_store_in_memory_has_no_files_to_lose() -> None:
    async with connect("sqlite://") as t:
        await t.schedules.put(schedule("a"))
        assert await keys(t) == ["a"]


# Those who use it.


async def test_the_service_answers_503_and_says_why(t: Tickler, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(t) as api:
        path.rename(path.with_name("away.db"))
        answer = await api("PUT", "/v1/schedules/u1/after", {"when": "@hourly"}, check=False)
        assert (answer.status, answer.is_problem) == (503, True)
        assert "was deleted or moved away" in answer.json["detail"]
        assert (await api("GET", "/v1/doctor", check=False)).status == 503
        ready = await api("GET", "/health/ready", check=False)
        assert ready.status == 503
        assert str(path).encode() not in ready.body, "anybody may ask that"
        assert "not ready: sqlite:///" in caplog.text
        path.with_name("away.db").rename(path)
        assert (await api.get("/health/ready")).status == 200
        assert (await api.put("/v1/schedules/u1/after", {"when": "@hourly"})).status == 201


async def test_a_worker_claims_nothing_says_why_and_goes_on_when_the_file_is_back(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickler.deliver.claim_loop.MAX_PAUSE_S", 0.2)
    clock, got = ManualClock(NOW_MS), list[str]()
    away = path.with_name("away.db")
    async with connect(f"sqlite:///{path}", clock=clock) as t:

        @t.handler("work")
        async def work(delivery: Delivery) -> None:
            got.append(delivery.key)

        await t.schedules.put(schedule("a"))
        with caplog.at_level(logging.WARNING, "tickler.deliver"):
            running = asyncio.create_task(t.run())
            path.rename(away)
            clock.advance(3600)
            await until("it has said why", lambda: "was deleted or moved away" in caplog.text)
            assert got == []
            away.rename(path)
            await until("it is delivered", lambda: got == ["a"])
            t.stop()
            await running
