"""The tests of HTTP run on both event loops, since uvloop has sockets and TLS of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

ON_BOTH = {"test_http.py", "test_http_session.py"}


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    own = {"asyncio": asyncio.new_event_loop}
    if item.path.name not in ON_BOTH and item.path.parent.name != "http_client":
        return own
    try:
        import uvloop
    except ModuleNotFoundError:
        return own
    return own | {"uvloop": uvloop.new_event_loop}
