"""An SQLite file and the key beside it: readable by their owner only, and found wherever the URL of the store leads."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import tickler
from tickler import InvalidInput
from tickler.web import ensure_key, make_private, sqlite_file

PROCESSES = 8


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


@pytest.mark.parametrize("name", ["notes.db", "my%20notes.db"])
async def test_what_a_store_keeps_is_readable_by_its_owner_only(tmp_path: Path, name: str) -> None:
    store = f"sqlite:///{tmp_path}/{name}?timeout=5"
    environ: dict[str, str] = {}
    ensure_key(environ, store)
    make_private(store)
    async with tickler.connect(store) as t:
        await t.schedules.put(tickler.Schedule(owner="u1", key="digest", when="@hourly"))
    file = name.replace("%20", " ")
    assert sqlite_file(store) == tmp_path / file
    assert {file, f"{file}.key"} <= modes(tmp_path).keys()
    assert set(modes(tmp_path).values()) == {0o600}
    again: dict[str, str] = {}
    ensure_key(again, store)
    assert again == environ


def test_processes_that_make_a_key_at_once_have_the_same(tmp_path: Path) -> None:
    begin = Barrier(PROCESSES)

    def start(_: int) -> str:
        environ: dict[str, str] = {}
        begin.wait()
        ensure_key(environ, f"sqlite:///{tmp_path}/notes.db")
        return environ["TICKLER_KEY"]

    with ThreadPoolExecutor(PROCESSES) as processes:
        (key,) = set(processes.map(start, range(PROCESSES)))
    assert len(key) == len(tickler.new_key())
    assert modes(tmp_path) == {"notes.db.key": 0o600}


def test_a_key_that_is_set_is_kept(tmp_path: Path) -> None:
    environ = {"TICKLER_KEY": "mine"}
    ensure_key(environ, f"sqlite:///{tmp_path}/notes.db")
    assert environ == {"TICKLER_KEY": "mine"}
    assert modes(tmp_path) == {}


@pytest.mark.parametrize("store", ["sqlite://", "memory://"])
def test_a_store_in_memory_has_no_file(store: str) -> None:
    environ = {"TICKLER_KEY": ""}
    ensure_key(environ, store)
    make_private(store)
    assert sqlite_file(store) is None
    assert len(environ["TICKLER_KEY"]) == len(tickler.new_key())


@pytest.mark.parametrize("store", ["postgresql://me@host/notes", "dynamodb://notes?region=eu-west-1"])
def test_stores_of_several_machines_need_a_key_that_is_set(store: str) -> None:
    assert sqlite_file(store) is None
    with pytest.raises(InvalidInput, match="TICKLER_KEY: it is missing"):
        ensure_key({}, store)


def test_a_key_that_cannot_be_kept_says_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"/nowhere/notes.db.key cannot be written \(No such file.*set TICKLER_KEY instead"):
        ensure_key({}, "sqlite:////nowhere/notes.db")


def test_what_is_there_already_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("mine")
    make_private(f"sqlite:///{tmp_path}/notes.db")
    assert (tmp_path / "notes.db").read_text() == "mine"
