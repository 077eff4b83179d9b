"""The programs of the guide to external cron: an endpoint, a Lambda function and a Cloudflare Worker, each on a real store."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

import tickler
from receivers.programs import served, write_program
from tickler import Schedule

SECRET = "a secret between the cron service and the endpoint"
FIRES = 20


class Sink(msgspec.Struct, frozen=True):
    """Where fires go, and which came."""

    url: str
    keys: list[str]


@pytest.fixture
def sink() -> Iterator[Sink]:
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            keys.append(self.headers["tickler-key"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: it would be mixed into the test's output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Sink(f"http://127.0.0.1:{server.server_port}", keys)
        server.shutdown()
        thread.join()


@pytest.fixture
def environ(sink: Sink, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Of the host, with a store in which fires are due."""
    environ = {
        "CRON_SECRET": SECRET,
        "TICKLER_STORE": sqlite_url,
        "TICKLER_ALLOW_NETWORKS": "127.0.0.0/8",
        "TICKLER_SIGNING_SECRET": tickler.new_secret(),
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    keys = [f"fire-{number:02}" for number in range(FIRES)]
    with tickler.connect_sync(sqlite_url) as t:
        t.schedules.put_many(Schedule(owner="ada", key=key, when="@daily", target=sink.url, enabled=False) for key in keys)
        for key in keys:
            t.trigger("ada", key)
    return environ


@pytest.fixture
def endpoint(environ: dict[str, str], tmp_path: Path) -> Iterator[str]:
    program = write_program("external-cron.md", "tick_endpoint.py", tmp_path)
    with served(program, "uvicorn", environ=environ) as address:
        yield f"{address}/tick"


def request_tick(endpoint: str, method: str, headers: dict[str, str]) -> tuple[int, dict[str, object]]:
    request = urllib.request.Request(endpoint, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_tick_with_the_secret_delivers_what_is_due(method: str, endpoint: str, sink: Sink) -> None:
    status, summary = request_tick(endpoint, method, {"authorization": f"Bearer {SECRET}"})
    assert status == 200
    assert (summary["claimed"], summary["delivered"], summary["left"]) == (FIRES, FIRES, False)
    assert len(sink.keys) == FIRES


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_tick_without_the_secret_is_refused_and_delivers_nothing(method: str, endpoint: str, sink: Sink) -> None:
    assert request_tick(endpoint, method, {})[0] == 401
    for guess in (SECRET, f"Basic {SECRET}", f"Bearer {SECRET.swapcase()}", f"Bearer {SECRET}!", "Bearer", "Bearer \xe9"):
        assert request_tick(endpoint, method, {"authorization": guess})[0] == 401
    assert sink.keys == []


def test_ticks_that_overlap_deliver_each_fire_once(endpoint: str, sink: Sink) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: request_tick(endpoint, "GET", {"authorization": f"Bearer {SECRET}"}), range(4)))
    assert [status for status, _ in answers] == [200] * 4
    assert sum(msgspec.convert(summary["delivered"], int) for _, summary in answers) == FIRES
    assert set(Counter(sink.keys).values()) == {1}
    assert len(sink.keys) == FIRES


def test_the_lambda_function_ticks_within_its_time(
    environ: dict[str, str], sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return 60_000

    write_program("external-cron.md", "lambda_tick.py", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lambda_tick", raising=False)
    summary = import_module("lambda_tick").handler({"version": "0"}, Context())
    json.dumps(summary)  # as Lambda does with what is returned
    assert summary["delivered"] == len(sink.keys) == FIRES


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node: the Cloudflare Worker of the guide is not run")
def test_the_cloudflare_worker_calls_the_endpoint(endpoint: str, sink: Sink, tmp_path: Path) -> None:
    program = write_program("external-cron.md", "worker.js", tmp_path).rename(tmp_path / "worker.mjs")

    def scheduled(secret: str) -> subprocess.CompletedProcess[str]:
        env = json.dumps({"TICK_URL": endpoint, "CRON_SECRET": secret})
        code = f"import worker from {json.dumps(program.as_uri())}; await worker.scheduled({{}}, {env}, {{}});"
        return subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, text=True, timeout=60)

    refused = scheduled("a guess")
    assert (refused.returncode, sink.keys) == (1, [])
    assert "the tick was answered with 401" in refused.stderr
    accepted = scheduled(SECRET)
    assert accepted.returncode == 0, accepted.stderr
    assert len(sink.keys) == FIRES
