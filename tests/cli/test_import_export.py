"""`tickler import` and `tickler export`: files and pipes, good lines and bad ones."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from tickler import Schedule, StoredSchedule, connect_sync

from .conftest import Here
from .test_schedules import NEW_YEAR, deeds


def line(key: str, when: str = "@daily", **more: object) -> str:
    return json.dumps({"owner": "u1", "key": key, "when": when, **more})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "schedules.ndjson"


@pytest.fixture
def full(here: Here, url: str) -> str:
    """A store with 250 schedules of two owners: more than a page."""
    with connect_sync(url) as t:
        t.schedules.put_many(
            Schedule(
                owner=f"u{number % 2}", key=f"k{number:03}", when=NEW_YEAR, tz="Asia/Tokyo", payload=number, enabled=number != 7
            )
            for number in range(250)
        )
    return url


def all_of(url: str) -> list[StoredSchedule]:
    with connect_sync(url) as t:
        found: list[StoredSchedule] = t.schedules.list(limit=1000).items
    return found


def test_what_was_exported_is_imported_into_another_store_as_it_was(here: Here, full: str, file: Path, tmp_path: Path) -> None:
    done = here("export", str(file))
    assert done == (0, "", "250 schedules exported\n")
    assert [path.name for path in tmp_path.iterdir() if "ndjson" in path.name] == [file.name]
    other = f"sqlite:///{tmp_path / 'other.db'}"
    done = here("import", str(file), "--store", other)
    assert (done.code, done.out) == (0, "250 schedules put, 0 lines refused\n")
    assert [each.declared() for each in all_of(other)] == [each.declared() for each in all_of(full)]
    assert deeds(other) == [("ada", "imported", None, None, "250 put, 0 refused")]


def test_an_export_goes_to_stdout_and_may_be_of_one_owner(here: Here, full: str) -> None:
    done = here("export", "--owner", "u1")
    assert (done.code, done.err) == (0, "125 schedules exported\n")
    assert [json.loads(line)["owner"] for line in done.lines] == ["u1"] * 125


def test_an_export_answers_in_json_beside_what_it_writes(here: Here, file_url: str, file: Path) -> None:
    here("add", "u1", "k", "@daily")
    done = here("export", str(file), "--json")
    assert (done.code, done.err, done.json) == (0, "", {"file": str(file), "exported": 1, "left_out": []})
    done = here("export", "--json")
    assert (done.json["key"], json.loads(done.err)) == ("k", {"file": "-", "exported": 1, "left_out": []})


def test_an_import_may_come_from_stdin(here: Here, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{line('a')}\n{line('b')}".encode())))
    assert here("import", "-").out == "2 schedules put, 0 lines refused\n"


def test_ctrl_c_ends_an_import_that_waits_for_stdin(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tickler", "import", "-", "--store", "sqlite:///t.db"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environ, preexec_fn=_heed_ctrl_c, **pipes) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            process.stdin.write("\n" * 200_000)  # more than a pipe holds: it is read by now
            process.stdin.flush()
            process.send_signal(signal.SIGINT)
            said = process.stderr.read() if process.wait(timeout=10) else ""
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "Fatal" not in said


def _heed_ctrl_c() -> None:
    """Who is started in the background, as these tests may be, ignores it, and so would what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_bad_lines_are_named_with_their_reason_and_the_others_are_put(here: Here, url: str, file: Path) -> None:
    file.write_text("\n".join([line("a"), "{", line("b", "at(2001-01-01)"), "", line("c")]))
    done = here("import", str(file))
    assert (done.code, done.out) == (1, "2 schedules put, 2 lines refused\n")
    told = [each for each in done.err.splitlines() if each.startswith("line ")]
    assert [each.partition(":")[0] for each in told] == ["line 2", "line 3"]
    assert "u1/b would never fire" in told[1]
    assert [each.key for each in all_of(url)] == ["a", "c"]


def test_an_import_answers_in_json(here: Here, file_url: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.cli.commands.import_.MAX_REPORTED", 1)
    file.write_text("\n".join([line("a"), line("b", "at(2001-01-01)"), "{", "["]))
    done = here("import", str(file), "--json")
    assert done.code == 1
    assert (done.json["put"], done.json["refused"]) == (1, 3)
    assert [(each["line"], each["key"]) for each in done.json["errors"]] == [(2, "b")]
    assert here("import", str(file)).err.splitlines()[-1] == "and 2 more"


def test_all_or_none_puts_nothing_when_a_line_is_refused(here: Here, url: str, file: Path) -> None:
    file.write_text("\n".join([line("a"), line("b", "at(2001-01-01)")]))
    done = here("import", "--all-or-none", str(file))
    assert (done.code, done.out) == (1, "0 schedules put, 1 line refused\n")
    assert all_of(url) == []
    file.write_text(line("a"))
    assert here("import", "--all-or-none", str(file)).out == "1 schedule put, 0 lines refused\n"


def test_a_file_that_cannot_be_read_or_written_is_named(here: Here, file_url: str, tmp_path: Path) -> None:
    here("add", "u1", "k", "@daily")
    done = here("import", str(tmp_path / "nothing"))
    assert (done.code, done.out) == (1, "")
    assert done.err == f"tickler: {tmp_path / 'nothing'}: no such file or directory: name a readable file, or -\n"
    done = here("export", str(tmp_path / "no" / "such" / "folder"))
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith("no such file or directory: name a writable file, or -\n")
    assert here("import", str(tmp_path)).code == 1


def test_an_export_that_fails_leaves_the_file_of_before(here: Here, file_url: str, file: Path, tmp_path: Path) -> None:
    file.write_text("yesterday's")
    assert here("export", "--force", str(file)).code == 1
    assert file.read_text() == "yesterday's"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_file_that_is_there_stays_unless_it_is_to_be_replaced(here: Here, file_url: str, file: Path) -> None:
    here("add", "u1", "k", "@daily")
    file.write_text("yesterday's")
    file.chmod(0o640)
    beside = file.with_name(f"{file.name}.part")
    beside.write_text("mine")
    done = here("export", str(file))
    assert (done.code, done.out) == (1, "")
    assert done.err == f"tickler: {file} already exists: name another file, or pass --force to replace it\n"
    assert file.read_text() == "yesterday's"
    assert here("export", str(file), "--force").code == 0
    assert json.loads(file.read_text())["key"] == "k"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert beside.read_text() == "mine"


def test_an_export_goes_where_a_symlink_points_to(here: Here, file_url: str, file: Path, tmp_path: Path) -> None:
    here("add", "u1", "k", "@daily")
    (tmp_path / "elsewhere").mkdir()
    real = tmp_path / "elsewhere" / "real.ndjson"
    file.symlink_to(real)
    for option in ([], ["--force"]):  # it is not there yet; it is there
        assert here("export", str(file), *option).code == 0
        assert file.is_symlink()
        assert json.loads(real.read_text())["key"] == "k"
        assert list(real.parent.iterdir()) == [real]


def test_what_is_no_file_is_written_to_and_not_replaced(here: Here, file_url: str, tmp_path: Path) -> None:
    here("add", "u1", "k", "@daily")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert here("export", str(pipe)).code == 0
        assert json.loads(os.read(reading, 1 << 16))["key"] == "k"
    finally:
        os.close(reading)
    assert pipe.is_fifo()


def test_what_cannot_be_written_down_whole_is_named(here: Here, file_url: str) -> None:
    here("add", "u1", "good", "@daily")
    here("add", "u1", "newer", "@daily")
    connection = sqlite3.connect(file_url.removeprefix("sqlite:///"))
    connection.execute("""UPDATE tickler_schedules SET body = '{"mood": 1}' WHERE key = 'newer'""")
    connection.commit()
    connection.close()
    done = here("export")
    assert (done.code, len(done.lines)) == (1, 1)
    assert "tickler: u1/newer left out: a newer Tickler wrote it: upgrade" in done.err
    (left_out,) = json.loads(here("export", "--json").err)["left_out"]
    assert left_out == {"owner": "u1", "key": "newer", "error": "a newer Tickler wrote it: upgrade"}
