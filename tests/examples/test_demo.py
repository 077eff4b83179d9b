"""What `make run` starts, as people start it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 30


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where the demo is served."""
    store = f"sqlite:///{tmp_path}/demo.db"
    command = ["-m", "tickler", "serve", "--port", "0", "--store", store, "--setup", "examples.demo:fill"]
    with subprocess.Popen([sys.executable, *command], cwd=ROOT, stderr=subprocess.PIPE, text=True, env=_environment()) as process:
        assert process.stderr is not None
        try:
            said = next(found for line in process.stderr if (found := re.search(r"http://[0-9.]+:\d+", line)))
            yield said[0]
        finally:
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
    assert process.returncode == 0


def test_the_demo_shows_what_is_due_what_was_delivered_and_what_failed(address: str) -> None:
    assert "Live fires" in _read(f"{address}/")
    until = time.monotonic() + TIMEOUT_S
    delivered = dead = False
    while not (delivered and dead) and time.monotonic() < until:
        _post(f"{address}/v1/schedules/amber-books/flaky-hook/trigger")
        _post(f"{address}/v1/schedules/birch-cafe/refused-post/trigger")
        dead = bool(_json(f"{address}/v1/fires?state=dead")["items"])
        past = _json(f"{address}/v1/schedules/amber-books/flaky-hook/fires")["items"]
        delivered = any(entry["happened"] == "delivered" for entry in past)
        time.sleep(0.5)
    assert delivered
    assert dead
    assert _json(f"{address}/v1/stats")["sleeping"] > 2_000
    assert "closed" in _json(f"{address}/v1/schedules/birch-cafe/refused-post/why")["sentence"]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TICKLER_")} | {"COLUMNS": "200"}


def _read(url: str) -> str:
    with urlopen(url, timeout=TIMEOUT_S) as answer:
        text: str = answer.read().decode()
        return text


def _post(url: str) -> None:
    with urlopen(Request(url, method="POST"), timeout=TIMEOUT_S):
        pass


def _json(url: str) -> Any:
    return msgspec.json.decode(_read(url))


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_what_runs_is_set_up_without_what_tests(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "apps", tmp_path / "apps")

    def plan(target: str) -> str:
        return subprocess.run(["make", "-n", target], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert "--group dev" not in plan("run")
    assert plan("check").index(".[server]") < plan("check").index("--group dev"), (
        "into the same environment, whatever comes first"
    )
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".run").touch()
    assert "pip install" not in plan("run")
    assert "--group dev" in plan("test")
