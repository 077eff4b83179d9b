"""`tickler tick`, run as people run it: one line of JSON, and an exit code that says whether something is left."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import tickler
from tickler import At, ManualClock, PythonTarget, Schedule
from tickler.clock import to_datetime
from tickler.deliver.summary import Summary

from .preloaded import run_tickler

HOUR_MS = 3_600_000
HANDLERS = """
import time

def register(tickler):
    tickler.handler("fine")(lambda fire: "done")
    tickler.handler("fails")(lambda fire: 1 / 0)
    tickler.handler("slow")(lambda fire: time.sleep(0.4))
"""


async def put_due(url: str, *handlers: str) -> None:
    """Schedules that have been due for a minute: put at a time when they were not, or they would be refused."""
    async with tickler.connect(url) as now, tickler.connect(url, clock=ManualClock(now.now_ms() - HOUR_MS)) as before:
        at = At(to_datetime(now.now_ms() - 60_000))
        await before.schedules.put_many(
            Schedule(owner="u1", key=f"k{n}", when=at, target=PythonTarget(handler)) for n, handler in enumerate(handlers)
        )


async def test_it_delivers_what_is_due_and_prints_its_summary_as_one_line_of_json(tmp_path: Path, sqlite_url: str) -> None:
    """Exit code 0, although something failed: that is tried again by itself. With handlers from the folder it runs in.

    Of one that it lacks it says so, once.
    """
    (tmp_path / "our_handlers.py").write_text(HANDLERS)
    await put_due(sqlite_url, "fine", "fails", "fine", "unknown", "unknown")
    done = run_tickler("tick", "--store", sqlite_url, "--setup", "our_handlers:register", folder=tmp_path, COLUMNS="20")
    assert (done.returncode, done.stdout.count("\n"), done.stderr.count("\n")) == (0, 1, 1)
    assert "the worker has no handler 'unknown'" in done.stderr
    summary = msgspec.json.decode(done.stdout, type=Summary)
    assert (summary.claimed, summary.delivered, summary.failed, summary.dead, summary.left) == (5, 2, 1, 0, False)
    assert summary.released == 2
    async with tickler.connect(sqlite_url) as t:
        found = [(await t.fires.history("u1", f"k{n}")).items[0] for n in range(3)]
        assert [entry.answer for entry in found] == ["done", None, "done"]
        assert [entry.detail for entry in found][1] == "ZeroDivisionError: division by zero"
        assert [record.value["doing"] for record in await t.records.list("worker") if isinstance(record.value, dict)] == [
            "stopped"
        ]


async def test_the_exit_code_is_3_when_the_budget_was_spent_and_something_is_left(tmp_path: Path, sqlite_url: str) -> None:
    (tmp_path / "our_handlers.py").write_text(HANDLERS)
    number = tickler.RunOptions().per_owner + 10  # of one owner: the last ten wait for others to end
    await put_due(sqlite_url, *["slow"] * number)
    done = run_tickler("tick", "--budget", "100", "--setup", "our_handlers:register", folder=tmp_path, TICKLER_STORE=sqlite_url)
    summary = msgspec.json.decode(done.stdout, type=Summary)
    assert (done.returncode, done.stderr, summary.left) == (3, "", True)
    assert 0 < summary.delivered < number
    async with tickler.connect(sqlite_url) as t:
        assert await t.index.next_due() is not None


def test_a_budget_that_is_none_is_named_and_nothing_is_touched(tmp_path: Path) -> None:
    done = run_tickler("tick", "--store", "sqlite:///t.db", "--budget", "0", folder=tmp_path, COLUMNS="200")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for '--budget'" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["tick"], ["work"], ["work", "--processes", "2"]], ids=" ".join)
def test_a_store_that_is_not_there_is_refused_and_not_made(tmp_path: Path, command: list[str]) -> None:
    """It may have been mistyped, and nothing would ever be due in it."""
    url = "sqlite:///tikler.db"
    done = run_tickler(*command, "--store", url, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"tickler: {url} has no Tickler tables: run `tickler migrate --store {url}`")
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_made_by_a_tick_where_its_url_says_so(tmp_path: Path) -> None:
    done = run_tickler("tick", "--store", "sqlite:///t.db?create=1", folder=tmp_path)
    assert (done.returncode, msgspec.json.decode(done.stdout)["claimed"]) == (0, 0)
    assert "created the Tickler tables in sqlite:///t.db?create=1" in done.stderr


def test_a_variable_or_a_setup_that_cannot_be_is_named_and_nothing_is_touched(tmp_path: Path) -> None:
    tick = ("tick", "--store", "sqlite:///t.db")
    for done, said in (
        (run_tickler(*tick, folder=tmp_path, TICKLER_ALLOW_NETWORKS="localhost"), "TICKLER_ALLOW_NETWORKS: 'localhost' is no"),
        (run_tickler(*tick, "--setup", "nowhere:register", folder=tmp_path), "--setup nowhere:register: No module named"),
    ):
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert done.stderr.startswith(f"tickler: {said}")
    assert list(tmp_path.iterdir()) == []
