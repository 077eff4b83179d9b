"""Sends the requests of one turn of the event loop together.

Each is a system call that may wake its receiver, and between two of them would run all else that a delivery takes. In a row
they cost half as much, and a receiver on this machine is woken once for many.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Sequence

from tickler.deliver.http_client.connection import Connection


class Outbox:
    """Sends requests on kept connections: in the next turn those that are put in this one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Connection] = []

    def put(self, connection: Connection) -> None:
        """Let a connection send its request, unless anything arrives before that."""
        if not self._waiting:
            self._loop.call_soon(self._send_all)
        self._waiting.append(connection)

    def _send_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        ended = _with_news(waiting)
        for connection in waiting:
            if connection in ended:
                connection.refuse_request()
            else:
                connection.send_request()


def _with_news(connections: Sequence[Connection]) -> set[Connection]:
    """Return those on which anything has arrived since their last response, an end included, that the event loop may not have
    seen yet. It makes a connection useless; found out before anything is sent on it, that costs no attempt.
    """
    if not hasattr(select, "poll"):  # Windows
        return {each for each in connections if each.has_news()}
    polled, by_descriptor = select.poll(), {}
    for each in connections:
        if (descriptor := each.descriptor) >= 0:
            polled.register(descriptor, select.POLLIN)
            by_descriptor[descriptor] = each
    return {by_descriptor[descriptor] for descriptor, _ in polled.poll(0)} if by_descriptor else set()
