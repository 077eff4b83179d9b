"""The demo, as people start it: in a pipe, on terminals of several sizes, and stopped by Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
SUMMARY = re.compile(r"ticks: (\d+); claimed: (\d+); still asleep: (\d+); ")
ENTER_SCREEN, LEAVE_SCREEN, SHOW_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"
# An unbuffered stdout loses the rest of a write that a signal interrupts.
CHANGE_OUTPUT = ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "PYTHONUNBUFFERED")
HOME = "\x1b[H"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@contextmanager
def started(*arguments: str, output: int, input: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    """The demo in a process of its own, which hears SIGINT even where the tests were started with it ignored."""
    environment = {name: value for name, value in os.environ.items() if name not in CHANGE_OUTPUT}
    ignored_or_not = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, str(DEMO), "--schedules", "300", *arguments],
        stdin=input,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm-256color"},
        text=True,
        encoding="utf-8",
    )
    signal.signal(signal.SIGINT, ignored_or_not)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def on_terminal(*arguments: str, columns: int, rows: int, interrupt_at: bytes | None = None) -> tuple[int, str]:
    """Exit code and all that was written; SIGINT is sent when `interrupt_at` is on the screen."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (rows, columns))
    written = b""
    try:
        with started(*arguments, output=theirs, input=theirs) as process:
            os.close(theirs)
            while piece := read_terminal(ours):
                written += piece
                if interrupt_at is not None and interrupt_at in written:
                    process.send_signal(signal.SIGINT)
                    interrupt_at = None
            return process.wait(timeout=30), written.decode()
    finally:
        os.close(ours)


def read_terminal(terminal: int) -> bytes:
    """What was written next; nothing when the other side has gone."""
    ready, _, _ = select.select([terminal], [], [], 30)
    assert ready, "the demo has written nothing for 30 s"
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux says that the other side has gone
        return b""


def claimed_in_all(written: str) -> int:
    found = SUMMARY.search(written)
    assert found, written
    return int(found[2])


def test_in_a_pipe_it_prints_a_line_a_second_and_a_summary() -> None:
    with started("--seconds", "3", output=subprocess.PIPE) as process:
        written, _ = process.communicate(timeout=60)
    *ticks, summary = written.splitlines()
    assert process.returncode == 0
    assert len(ticks) == 3
    assert all(re.match(r"UTC \d\d:\d\d:\d\d  asleep \d+  paused \d+  due \d+  claimed \d+  ", tick) for tick in ticks)
    assert claimed_in_all(summary) > 0
    assert "\x1b" not in written


def test_what_it_expects_to_be_due_is_what_it_claims() -> None:
    with started("--seconds", "3", output=subprocess.PIPE) as process:
        written, _ = process.communicate(timeout=60)
    expected_and_claimed = re.findall(r"due (\d+)  claimed (\d+)", written)
    assert len(expected_and_claimed) == 3
    assert all(due == claimed for due, claimed in expected_and_claimed)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (140, 40), (20, 6)])
def test_on_a_terminal_it_draws_within_the_screen_and_gives_it_back(columns: int, rows: int) -> None:
    code, written = on_terminal("--seconds", "3", columns=columns, rows=rows)
    assert code == 0
    assert "Traceback" not in written
    _, entered, drawn = written.partition(ENTER_SCREEN)
    drawn, left, after = drawn.partition(LEAVE_SCREEN)
    assert (entered, left) == (ENTER_SCREEN, LEAVE_SCREEN)
    assert ENTER_SCREEN not in after
    assert SHOW_CURSOR in drawn + after
    assert claimed_in_all(after) > 0
    frames = [CONTROL.sub("", frame).splitlines() for frame in drawn.split(HOME)]
    assert len(frames) >= 3
    assert all(len(frame) <= rows and all(len(line) <= columns for line in frame) for frame in frames)


def test_on_a_terminal_ctrl_c_gives_the_screen_back_and_sums_up() -> None:
    code, written = on_terminal(columns=80, rows=24, interrupt_at=b"Ctrl-C leaves")
    assert code == 0
    assert "Traceback" not in written
    assert SUMMARY.search(written.rpartition(LEAVE_SCREEN)[2])


def test_in_a_pipe_ctrl_c_sums_up() -> None:
    with started(output=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("UTC ")
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in rest
    assert SUMMARY.search(rest)


def test_a_store_it_cannot_open_is_one_clear_line() -> None:
    with started("--store", "sqlite:////no/such/folder/demo.db", output=subprocess.PIPE) as process:
        written, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert written.startswith("tickler: ")
    assert written.count("\n") == 1


def test_a_store_of_ones_own_is_kept_and_carried_on_with(tmp_path: Path) -> None:
    for _ in range(2):
        with started("--seconds", "1", "--store", f"sqlite:///{tmp_path}/demo.db", output=subprocess.PIPE) as process:
            written, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert SUMMARY.search(written)
    assert (tmp_path / "demo.db").exists()
