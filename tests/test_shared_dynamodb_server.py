"""An engine that several processes share runs for as long as one of them uses it. A web server stands in for the engine."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from dynamodb_server import Engine
from shared_dynamodb_server import SharedDynamodbServer

TIMEOUT_S = 30


class Shared(SharedDynamodbServer):
    def _find_engine(self, port: int) -> Engine:
        command = [sys.executable, "-S", "-m", "http.server", "--bind", "127.0.0.1", str(port)]
        return Engine("a web server", "it starts at once", is_judge=True, command=command)


def is_up(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(endpoint, timeout=TIMEOUT_S) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False


def test_the_engine_that_one_started_is_used_by_the_others_and_ends_with_the_last(tmp_path: Path) -> None:
    first, second = Shared(tmp_path), Shared(tmp_path)
    with ThreadPoolExecutor() as pool:
        with first:
            pass
        assert not is_up(first.endpoint)

        first.__enter__()
        with second:
            assert (second.endpoint, second.engine, second.is_judge) == (first.endpoint, "a web server", True)
            leaving = pool.submit(first.__exit__, None, None, None)
            with pytest.raises(TimeoutError):
                leaving.result(0.2)
            assert is_up(second.endpoint)
        leaving.result(TIMEOUT_S)
    assert not is_up(first.endpoint)


def test_who_comes_while_the_first_is_leaving_starts_another(tmp_path: Path) -> None:
    first, second, third = (Shared(tmp_path) for _ in range(3))
    first.__enter__()
    with ThreadPoolExecutor() as pool, ExitStack() as late:
        with second:
            leaving = pool.submit(first.__exit__, None, None, None)
            with pytest.raises(TimeoutError):
                leaving.result(0.2)
            late.enter_context(third)
            assert third.endpoint != first.endpoint
        leaving.result(TIMEOUT_S)
        assert is_up(third.endpoint)
    assert not is_up(third.endpoint)
