"""The web applications of the guide: served by real servers, called over HTTP, and stopped by signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec

import tickler
from tickler.fires import Fire

ROOT = Path(__file__).parents[2]
SITE = ROOT / "examples" / "django_site"
TIMEOUT_S = 30
WSGI = """
import sys
from wsgiref.simple_server import make_server
from wsgi import application
server = make_server("127.0.0.1", 0, application)
print(f"http://127.0.0.1:{server.server_port}", file=sys.stderr, flush=True)
server.serve_forever()
"""
BUG = """
from examples.fastapi_app import app, t

fires = t.store.fires
real = fires.claim

async def claim(request):
    claims = await real(request)
    if any(each.schedule.key == "bug" for each in claims):
        raise RuntimeError("a bug in the worker")
    return claims

fires.claim = claim
"""


class Application:
    """A running process, and what it wrote to standard error."""

    def __init__(self, process: subprocess.Popen[str], address: str, log: Path) -> None:
        self.process = process
        self.address = address
        self._log = log

    @property
    def said(self) -> str:
        return self._log.read_text()

    def get(self, path: str) -> tuple[int, Any]:
        return self._ask(Request(f"{self.address}{path}"))

    def put(self, path: str, value: object) -> int:
        headers = {"content-type": "application/json"}
        return self._ask(Request(f"{self.address}{path}", msgspec.json.encode(value), headers, method="PUT"))[0]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT_S)

    def _ask(self, request: Request) -> tuple[int, Any]:
        try:
            with urlopen(request, timeout=TIMEOUT_S) as answer:
                return answer.status, msgspec.json.decode(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, msgspec.json.decode(error.read())


@contextmanager
def running(
    command: Sequence[str], folder: Path, tmp_path: Path, *, serves: bool = True, **environ: str
) -> Iterator[Application]:
    log = tmp_path / f"{len(list(tmp_path.glob('*.log')))}.log"
    given = {name: value for name, value in os.environ.items() if not name.startswith("TICKLER_")}
    paths = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "TICKLER_STORE": f"sqlite:///{tmp_path}/reminders.db"}
    with log.open("w") as said:
        process = subprocess.Popen([sys.executable, *command], cwd=folder, stderr=said, env={**given, **paths, **environ})
    try:
        address = ""
        if serves:
            until(lambda: process.poll() is not None or re.search(r"http://[0-9.]+:\d+", log.read_text()) is not None)
            found = re.search(r"http://[0-9.]+:\d+", log.read_text())
            assert found is not None, log.read_text()
            address = found[0]
        yield Application(process, address, log)  # type: ignore[arg-type]  # its output goes to the log
    finally:
        process.kill()
        process.wait()


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    patience_until = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < patience_until, "it did not come to hold in time"
        time.sleep(0.05)


def soon() -> str:
    return (datetime.now(UTC) + timedelta(seconds=0.3)).isoformat()


def fastapi(program: str = "examples.fastapi_app:app") -> list[str]:
    return ["-m", "uvicorn", "--port", "0", program]


async def happened(tmp_path: Path, owner: str, key: str) -> list[str]:
    async with tickler.connect(f"sqlite:///{tmp_path}/reminders.db") as t:
        return [entry.happened for entry in (await t.fires.history(owner, key)).items]


async def test_fastapi_delivers_beside_its_requests_and_drains_on_sigterm(tmp_path: Path) -> None:
    with running(fastapi(), ROOT, tmp_path, MAIL_S="1") as app:
        assert app.get("/health") == (200, {"workers": 1, "in_flight": 0})
        assert app.put("/reminders/ada/past", {"at": "2020-01-01T00:00:00Z", "text": "late"}) == 422
        assert app.put("/reminders/ada/tea", {"at": soon(), "text": "tea"}) == 200
        until(lambda: app.get("/health")[1]["in_flight"] == 1)
        assert app.get("/sent") == (200, []), "it has begun, and not ended"
        app.stop()
        assert "Application shutdown complete" in app.said
    assert await happened(tmp_path, "ada", "tea") == ["delivered"]


def test_a_fastapi_process_ends_when_its_worker_fails(tmp_path: Path) -> None:
    (tmp_path / "buggy_app.py").write_text(BUG, encoding="utf-8")
    with running(fastapi("buggy_app:app"), ROOT, tmp_path) as app:
        app.put("/reminders/ada/bug", {"at": soon(), "text": "tea"})
        assert app.process.wait(TIMEOUT_S) != 0
        assert "the worker has stopped, and so does this process" in app.said
        assert "RuntimeError: a bug in the worker" in app.said


def test_django_and_its_command_share_the_deliveries_and_drain_on_sigterm(tmp_path: Path) -> None:
    """Both processes deliver, each with a worker of its own."""
    with (
        running(["-c", WSGI], SITE, tmp_path, DELIVER_HERE="1") as site,
        running(["manage.py", "deliver"], SITE, tmp_path, serves=False) as command,
        tickler.connect_sync(f"sqlite:///{tmp_path}/reminders.db") as t,
    ):
        assert site.put("/reminders/ada/past", {"at": "2020-01-01T00:00:00Z", "text": "late"}) == 422
        until(lambda: len(site.get("/health")[1]["workers"]) == 2)
        names = [f"tea-{number}" for number in range(4)]
        for name in names:
            assert site.put(f"/reminders/ada/{name}", {"at": soon(), "text": name}) == 200
        until(lambda: all(site.get(f"/reminders/ada/{name}")[1]["history"] for name in names))
        histories = [site.get(f"/reminders/ada/{name}")[1]["history"] for name in names]
        assert histories == [[{"happened": "delivered", "answer": f"sent to ada: {name}"}] for name in names], "each once"

        held: list[Fire] = []  # by the command
        while not held:
            assert site.put("/reminders/ada/slow", {"at": soon(), "text": "slow", "seconds": 1}) == 200
            until(lambda: any(fire.worker for fire in t.fires.list().items))
            held = [fire for fire in t.fires.list().items if f":{command.process.pid}:" in (fire.worker or "")]
        assert command.stop() == 0, command.said
        (entry,) = [each for each in t.fires.history("ada", "slow").items if each.fire_id == held[0].id]
        assert (entry.happened, entry.attempt, entry.worker) == ("delivered", 1, held[0].worker)
        assert len(site.get("/health")[1]["workers"]) == 1
