"""Visitors who each have a browser context of their own, and applications that they visit in this process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
import uvicorn

from .visitor import TELEPHONE, Visitor

if TYPE_CHECKING:
    from playwright.async_api import Browser, ViewportSize

FINGER = 43.5  # pixels

# Returns what a finger would miss.
_SMALL = """([height, width]) => [...document.querySelectorAll(
  "button, .button, nav a, summary, select, .choices a, input:not([type=hidden], [type=checkbox])"
)].filter((element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0)
  .map((element) => [element.getBoundingClientRect(), element.outerHTML.slice(0, 100)])
  .filter(([box]) => box.height < height || box.width < width).map(([box, what]) => `${box.width} by ${box.height}: ${what}`)"""


class NewVisitor(Protocol):
    async def __call__(self, url: str, *, zone: str, size: ViewportSize = TELEPHONE, scripts: bool = True) -> Visitor: ...


def run_on_one_worker(items: Iterable[pytest.Item], folder: Path) -> None:
    """Let Chromium start once for the tests of a folder, which run on the event loop that it is bound to."""
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@asynccontextmanager
async def visitors(chromium: Browser) -> AsyncIterator[NewVisitor]:
    """Yield what makes a visitor with a fresh browser context. In the end, none of them has met a fault."""
    async with AsyncExitStack() as stack:
        known: list[Visitor] = []

        async def new_visitor(url: str, *, zone: str, size: ViewportSize = TELEPHONE, scripts: bool = True) -> Visitor:
            context = await chromium.new_context(
                viewport=size,
                timezone_id=zone,
                locale="en-GB",
                color_scheme="light",
                reduced_motion="reduce",
                java_script_enabled=scripts,
            )
            stack.push_async_callback(context.close)
            known.append(Visitor(await context.new_page(), url))
            return known[-1]

        yield new_visitor
        assert [fault for visitor in known for fault in visitor.faults] == []


async def fits_fingers(visitor: Visitor, min_width: float = FINGER) -> None:
    """Check that every control is large enough for a finger."""
    small = await visitor.page.evaluate(_SMALL, [FINGER, min_width])
    assert small == [], f"{visitor.path}: {small}"


@asynccontextmanager
async def serving_here(app: Any, listening: socket.socket) -> AsyncIterator[None]:
    """Serve an application on the event loop of the tests, while the block runs."""
    server = _Server(uvicorn.Config(app, ws="none", lifespan="off", log_config=None))
    task = asyncio.create_task(server.serve([listening]))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        await task


class _Server(uvicorn.Server):
    """uvicorn without handlers of signals, which are pytest's."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
