"""How many file descriptors a process of ours may have."""

from __future__ import annotations

import logging
import resource
import sys
from collections.abc import Iterator
from importlib import reload
from pathlib import Path

import pytest

import tickler
from tickler.cli.commands import serve, work
from tickler.process import file_limit
from tickler.process.file_limit import raise_file_limit
from tickler.server.middleware.connection_limit import MAX_CONNECTIONS, connection_limits

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


def test_on_windows_there_is_no_limit_and_nothing_to_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setitem(sys.modules, "resource", None)  # as if there were no such module
        reload(file_limit)
        try:
            file_limit.raise_file_limit()
            assert file_limit.file_limit() is None
        finally:
            context.undo()
            reload(file_limit)
    assert file_limit.file_limit() == 256
    assert connection_limits(None).total == MAX_CONNECTIONS


def test_only_one_module_asks_for_the_limit() -> None:
    """Elsewhere the import would fail on Windows."""
    root = Path(tickler.__file__).parent
    asking = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if "import resource" in path.read_text("utf-8")}
    assert asking == {"process/file_limit.py"}
