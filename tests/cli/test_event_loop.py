"""The commands that run for long are on uvloop where it is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tickler import InvalidInput
from tickler.process.event_loop import loop_factory

from .preloaded import run_tickler

SETUP = """
import asyncio

def show(tickler):
    print(type(asyncio.get_running_loop()).__module__, flush=True)
"""


@pytest.mark.parametrize(
    ("value", "module"), [(None, "uvloop"), ("1", "uvloop"), ("0", "asyncio.unix_events")], ids=["unset", "1", "0"]
)
def test_a_tick_runs_on_uvloop_unless_it_is_turned_off(tmp_path: Path, sqlite_url: str, value: str | None, module: str) -> None:
    (tmp_path / "shows.py").write_text(SETUP)
    tick = ("tick", "--store", f"{sqlite_url}?create=1", "--setup", "shows:show")
    done = run_tickler(*tick, folder=tmp_path, **({} if value is None else {"TICKLER_UVLOOP": value}))
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, module)


STOPS = """
import asyncio, os, signal

def show(tickler):
    print(type(asyncio.get_running_loop()).__module__, flush=True)
    stop_once_it_can_be_stopped()

def stop_once_it_can_be_stopped():
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        asyncio.get_running_loop().call_later(0.02, stop_once_it_can_be_stopped)
    else:
        os.kill(os.getppid() if "OF_SEVERAL" in os.environ else os.getpid(), signal.SIGTERM)
"""


@pytest.mark.parametrize("command", ["work", "work --processes 2", "serve --port 0"])
def test_a_worker_and_the_service_run_on_uvloop_too(tmp_path: Path, sqlite_url: str, command: str) -> None:
    (tmp_path / "stops.py").write_text(STOPS)
    of_several = {"OF_SEVERAL": "1"} if "processes" in command else {}
    options = ("--store", f"{sqlite_url}?create=1", "--setup", "stops:show")
    done = run_tickler(*command.split(), *options, folder=tmp_path, **of_several)
    assert (done.returncode, set(done.stdout.split())) == (0, {"uvloop"}), done.stderr


@pytest.mark.parametrize("processes", ["1", "2"])
def test_another_value_is_refused_by_name_and_nothing_is_touched(tmp_path: Path, processes: str) -> None:
    work = ("work", "--store", "sqlite:///t.db", "--processes", processes)
    done = run_tickler(*work, folder=tmp_path, TICKLER_UVLOOP="yes")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("tickler: TICKLER_UVLOOP: 'yes' is neither 0 nor 1: write 0 ")
    assert list(tmp_path.iterdir()) == []


def test_without_uvloop_asyncios_own_is_used_unless_uvloop_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert loop_factory({}) is None
    assert loop_factory({"TICKLER_UVLOOP": ""}) is None
    with pytest.raises(InvalidInput, match=r"uvloop is not installed: pip install 'ticklerfile\[uvloop\]', or leave it out"):
        loop_factory({"TICKLER_UVLOOP": "1"})
