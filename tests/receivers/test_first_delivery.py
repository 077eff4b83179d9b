"""The guide to a first delivery, gone through: its receiver, its schedule, a worker that is killed, and one that takes over."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from receivers.programs import GUIDES, write_program

GUIDE = "first-delivery.md"
PORT = "8000"
QUICKER = {"time.sleep(2)": "time.sleep(1)", "@every 5s": "@every 1s"}  # than a person who reads along
WORK = "-m tickler work --lease 5"
# The least that a worker takes is 5 s. This one is killed, so nobody could take over from it while it lives.
WORK_WITH_A_SHORT_LEASE = """-c '
from datetime import timedelta
from tickler.deliver import run_options as options
options.MIN_LEASE = timedelta(seconds=1)
from tickler.cli.app import run
run()
' work --lease 1"""
ARRIVED = re.compile(r"(fire_\w+) \{'text': 'hello'\} attempt (\d+)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the programs of the guide, on a port that is free, and quicker."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        changed = {PORT: str(free.getsockname()[1]), **QUICKER}
    programs = ""
    for name in ("receiver.py", "put.py", "history.py"):
        program = write_program(GUIDE, name, tmp_path)
        text = program.read_text(encoding="utf-8")
        programs += text
        for old, new in changed.items():
            text = text.replace(old, new)
        program.write_text(text, encoding="utf-8")
    assert all(old in programs for old in changed)
    share, _ = re.findall(r"^```sh\n(.*?)^```$", (GUIDES / GUIDE).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    subprocess.run(["bash", "-euc", share.replace("python ", f"{sys.executable} ", 1)], cwd=tmp_path, check=True, timeout=60)
    return tmp_path


@contextmanager
def in_a_shell(folder: Path, command: str) -> Iterator[subprocess.Popen[str]]:
    """That has read what all shells share."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TICKLER_")}
    with subprocess.Popen(
        ["bash", "-euc", f". ./first.env; exec {sys.executable} {command}"],
        cwd=folder,
        env={**environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_a_worker_that_is_killed_in_the_middle_is_followed_by_another_that_delivers_the_same_fire(folder: Path) -> None:
    with in_a_shell(folder, "put.py") as put:
        assert "datetime" in said(put)
        assert put.wait(60) == 0
    with in_a_shell(folder, "receiver.py") as receiver:
        with in_a_shell(folder, WORK_WITH_A_SHORT_LEASE) as killed:
            first = ARRIVED.match(said(receiver))
            assert first is not None
            assert first[2] == "1"
            killed.kill()  # the receiver has not answered yet
        with in_a_shell(folder, WORK) as worker:
            while (again := ARRIVED.match(said(receiver))) is not None and again[1] != first[1]:
                """Those that came due meanwhile."""
            assert again is not None
            assert again[2] == "2"
            while (following := ARRIVED.match(said(receiver))) is not None and following[1] == first[1]:
                """It is not sent a third time."""
            worker.terminate()
            assert worker.wait(60) == 0
    with in_a_shell(folder, "history.py") as history:
        what = [line.split()[1:3] for line in (history.stdout or ()) if line.startswith(first[1])]
    assert what == [["delivered", "2"], ["expired", "1"]]
