"""How processes that run for long speak: for people, and for programs."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from tickler import InvalidInput
from tickler.cli.logs import JsonFormatter, configure_logging

from .preloaded import run_tickler
from .test_tick import HANDLERS, put_due


def record(text: str, *values: object, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("tickler.deliver", logging.WARNING, "file.py", 1, text, values, None)
    made.created = 1_921_406_400.25
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_a_line_is_an_object_with_what_it_is_about_in_fields() -> None:
    line = JsonFormatter().format(record('%s said "no"\n', "u1/k", fire_id="fire_1", owner="u1", key="k", attempt=2))
    assert "\n" not in line
    assert json.loads(line) == {
        "at": "2030-11-20T12:00:00.250Z",
        "level": "warning",
        "logger": "tickler.deliver",
        "message": 'u1/k said "no"\n',
        "fire_id": "fire_1",
        "owner": "u1",
        "key": "k",
        "attempt": 2,
    }


def test_a_line_about_nothing_in_particular_has_no_such_fields() -> None:
    assert set(json.loads(JsonFormatter().format(record("stopped")))) == {"at", "level", "logger", "message"}


def test_an_error_goes_along() -> None:
    failed = record("failed")
    try:
        raise ValueError("odd \ud800")
    except ValueError:
        failed.exc_info = sys.exc_info()
    error = json.loads(JsonFormatter().format(failed))["error"]
    assert error.startswith("Traceback")
    assert "ValueError: odd" in error


def test_a_way_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="TICKLER_LOG: unknown log format 'xml': use 'text' or 'json'"):
        configure_logging({"TICKLER_LOG": "xml"})


async def test_a_tick_says_in_json_which_fire_it_gave_up(tmp_path: Path, sqlite_url: str) -> None:
    (tmp_path / "our_handlers.py").write_text(
        HANDLERS.replace("1 / 0", "(_ for _ in ()).throw(__import__('tickler').GiveUp('no'))")
    )
    await put_due(sqlite_url, "fine", "fails")
    tick = ("tick", "--store", sqlite_url, "--setup", "our_handlers:register")
    done = run_tickler(*tick, folder=tmp_path, TICKLER_LOG="json")
    assert done.returncode == 0, done.stderr
    (line,) = map(json.loads, done.stderr.splitlines())
    assert line["fire_id"].startswith("fire_")
    assert (line["owner"], line["key"], line["attempt"], line["level"]) == ("u1", "k1", 1, "warning")
    assert line["message"].startswith("u1/k1 is dead after attempt 1: no (")
    assert json.loads(done.stdout)["dead"] == 1


def test_a_variable_that_cannot_be_is_named_before_anything_is_touched(tmp_path: Path) -> None:
    done = run_tickler("work", "--store", "sqlite:///t.db", folder=tmp_path, TICKLER_LOG="xml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tickler: TICKLER_LOG: unknown log format 'xml': use 'text' or 'json'\n"
    assert list(tmp_path.iterdir()) == []
