"""A demo whose weeks are played once, for all tests; each starts it on a copy of the file."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from slothpost.app import Slothpost, open_slothpost
from slothpost.demo import Demo, open_demo
from slothpost.settings import Settings
from tickler import ManualClock, new_key

ZONE = "Europe/Berlin"
THURSDAY = datetime(2026, 11, 19, 8, 20, tzinfo=UTC)  # 09:20 in Berlin


class Started(msgspec.Struct, frozen=True):
    """A demo that runs, without a worker and without a web server."""

    demo: Demo
    app: Slothpost
    clock: ManualClock


Start = Callable[[datetime], AbstractAsyncContextManager[Started]]


class Made(msgspec.Struct, frozen=True):
    """A file that was filled, the key that it needs, and what was said meanwhile."""

    path: Path
    key: str
    said: list[str]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The file of a demo that was started for the first time on a Thursday morning."""
    found = Made(tmp_path_factory.mktemp("demo") / "demo.db", new_key(), [])

    async def fill() -> None:
        found.path.touch(0o600)  # as the command line does
        found.path.with_name("demo.begun.db").write_text("left by a start that was interrupted")
        async with opened(found.path, ManualClock(THURSDAY), free_port(), found.said):
            pass

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TICKLER_KEY", found.key)
        asyncio.run(fill())
    return found


@pytest.fixture
def path(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that file, which can be decrypted."""
    monkeypatch.setenv("TICKLER_KEY", made.key)
    return Path(shutil.copy(made.path, tmp_path))


@pytest.fixture
def start(path: Path) -> Start:
    """Start the demo at an instant. Within a test, it has the same ports each time."""
    port = free_port()
    return lambda at: opened(path, ManualClock(at), port, [])


@asynccontextmanager
async def opened(path: Path, clock: ManualClock, port: int, said: list[str]) -> AsyncIterator[Started]:
    settings = Settings(store=f"sqlite:///{path}", base_url=f"http://127.0.0.1:{port}")
    async with (
        open_demo(settings, say=said.append, now_ms=clock.now_ms, zone=ZONE) as demo,
        open_slothpost(demo.settings, clock=clock) as app,
    ):
        await demo.fill(app)
        yield Started(demo, app, clock)


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])
