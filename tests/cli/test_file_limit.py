"""How many file descriptors a process of ours may have."""

from __future__ import annotations

import logging
import resource
from collections.abc import Iterator

import pytest

from tickler.cli import file_limit, serve, work
from tickler.cli.file_limit import raise_file_limit

NOFILE = resource.RLIMIT_NOFILE


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    before = resource.getrlimit(NOFILE)
    resource.setrlimit(NOFILE, (256, before[1]))
    yield
    resource.setrlimit(NOFILE, before)


def test_the_soft_limit_becomes_the_hard_one() -> None:
    raise_file_limit()
    soft, hard = resource.getrlimit(NOFILE)
    assert soft == hard


def test_where_it_may_not_be_raised_it_stays(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    caplog.set_level(logging.INFO, "tickler")
    with monkeypatch.context() as context:
        context.setattr(resource, "setrlimit", refused)
        raise_file_limit()
    assert resource.getrlimit(NOFILE)[0] == 256
    assert "stays at 256" in caplog.text


@pytest.mark.parametrize("command", [work, serve], ids=["work", "serve"])
def test_work_and_serve_raise_it(command: object, monkeypatch: pytest.MonkeyPatch) -> None:
    class Raised(Exception):
        pass

    def told() -> None:
        raise Raised

    monkeypatch.setattr(command, "raise_file_limit", told)
    with pytest.raises(Raised):
        command.command(store="memory://")  # type: ignore[attr-defined]
    assert file_limit.raise_file_limit is raise_file_limit
