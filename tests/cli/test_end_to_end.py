"""The command line as people have it: processes, a pipe, a terminal that answers, and a shell that completes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from .test_migrate import start_tickler

HANDLERS = """
def register(tickler):
    tickler.handler("digest")(lambda fire: f"sent to {fire.payload}")
"""


def test_a_schedule_from_its_first_day_to_another_store(tmp_path: Path) -> None:
    """Put, fired, delivered, exported, imported: each by a process of its own."""
    (tmp_path / "our_handlers.py").write_text(HANDLERS)

    def tickler(*arguments: str, store: str = "sqlite:///t.db") -> str:
        done = start_tickler(*arguments, folder=tmp_path, TICKLER_STORE=store, USER="ada", COLUMNS="40")
        assert done.returncode == 0, done.stderr
        return done.stdout

    tickler("add", "u1", "digest", "0 9 * * tue", "--tz", "Europe/Paris", "--handler", "digest", "--payload", '"ada"')
    fire = json.loads(tickler("trigger", "u1", "digest", "--json"))
    assert json.loads(tickler("tick", "--setup", "our_handlers:register"))["delivered"] == 1
    (entry,) = json.loads(tickler("fires", "--history", "--owner", "u1", "--key", "digest", "--json"))["items"]
    assert (entry["fire_id"], entry["answer"]) == (fire["id"], "sent to ada")
    tickler("export", "all.ndjson")
    tickler("import", "all.ndjson", store="sqlite:///other.db")
    (there,) = json.loads(tickler("list", "--json", store="sqlite:///other.db"))["items"]
    assert (there["when"], there["tz"], there["payload"]) == ("0 9 * * tue", "Europe/Paris", "ada")


def on_a_terminal(folder: Path, types: str, *arguments: str) -> tuple[int, str]:
    """Exit code and screen of a command that somebody types an answer to."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TICKLER_STORE": "sqlite:///t.db", "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-m", "tickler", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environ
    ) as process:
        os.close(theirs)
        screen = ""
        asked = False
        while True:
            try:
                read = os.read(ours, 4096).decode()
            except OSError:  # the other side is closed
                break
            screen += read
            if "[y/N]" in screen and not asked:
                asked = True
                os.write(ours, types.encode())
        code = process.wait(timeout=60)
    os.close(ours)
    return code, screen


def test_on_a_terminal_a_deletion_is_asked_about(tmp_path: Path) -> None:
    start_tickler("add", "u1", "k", "@daily", folder=tmp_path, TICKLER_STORE="sqlite:///t.db")
    code, screen = on_a_terminal(tmp_path, "n\n", "delete", "u1", "k")
    assert (code, "delete u1/k and cancel its undelivered fires?" in screen, "nothing changed" in screen) == (1, True, True)
    code, screen = on_a_terminal(tmp_path, "y\n", "delete", "u1", "k")
    assert (code, "u1/k deleted" in screen) == (0, True)
    assert on_a_terminal(tmp_path, "", "delete", "u1", "k", "--yes")[0] == 3


def test_a_shell_completes_commands_and_values(tmp_path: Path) -> None:
    for typed, offered in (("tickler imp", "import"), ("tickler list --state pa", "paused")):
        place = str(len(typed.split()) - 1)
        done = start_tickler(folder=tmp_path, _TICKLER_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=place)
        assert offered in done.stdout.split()


def test_who_stops_reading_is_no_error_worth_a_traceback(tmp_path: Path) -> None:
    start_tickler("add", "u1", "k", "@daily", folder=tmp_path, TICKLER_STORE="sqlite:///t.db")
    command = f"{sys.executable} -m tickler export --store sqlite:///t.db | true"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr


# Where the answer cannot go.

WITHOUT_A_STORE = ("preview", "@daily", "-n", "3")
NOTHING_MAY_GROW = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); from tickler.cli import main; main()"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_disk_that_is_full_is_one_line_and_exit_code_1(tmp_path: Path, unbuffered: str) -> None:
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", NOTHING_MAY_GROW, *WITHOUT_A_STORE],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": unbuffered},
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (1, "tickler: stdout: file too large: the output is incomplete\n")


@pytest.mark.parametrize("command", [WITHOUT_A_STORE, ("export", "--store", "sqlite:///t.db")], ids=lambda command: command[0])
def test_an_answer_that_nobody_reads_any_more_ends_quietly_with_141(tmp_path: Path, command: tuple[str, ...]) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert start_tickler("add", "u1", "k", "@daily", "--store", "sqlite:///t.db", folder=tmp_path).returncode == 0
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tickler", *command],
            cwd=tmp_path,
            env=environ,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
