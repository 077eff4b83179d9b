"""Walks through a connection in random steps, and checks what Relay demands of each page."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from query_client import QueryClient


async def _nothing() -> None:
    pass


async def walk(client: QueryClient, list_: str, drawn: random.Random, decide: Callable[[], Awaitable[None]] = _nothing) -> None:
    """Go on and back from somewhere in a list, such as `prices(store: 1`, which may be in a field.

    Cursors carry the instant of the walk, so it must have one after something is decided.
    """
    page = "first: $first, after: $after, last: $last, before: $before"
    asked = "query ($first: Int, $after: String, $last: Int, $before: String) "
    asked += f"{{ {list_}, {page}) {{ edges {{ cursor }} pageInfo {{ hasNextPage hasPreviousPage }} }} }}"
    asked += " }" * list_.count("{")

    async def ask(**arguments: Any) -> tuple[list[str], bool, bool]:
        connection = await client.data(asked, **arguments)
        while "edges" not in connection:
            (connection,) = connection.values()
        info = connection["pageInfo"]
        return [edge["cursor"] for edge in connection["edges"]], info["hasNextPage"], info["hasPreviousPage"]

    all_of_them, _, _ = await ask(first=2_048)
    end = len(all_of_them)
    assert end or decide is _nothing
    low = high = drawn.randint(0, end)  # what was seen is between
    for _ in range(6):
        await decide()
        size = drawn.choice([0, 1, 2, 3, 7, 50])
        can_go_on, can_go_back = (high > 0, low < end) if decide is not _nothing else (True, True)
        if can_go_on and (drawn.random() < 0.5 or not can_go_back):
            edges, has_next, has_previous = await ask(first=size, after=all_of_them[high - 1] if high else None)
            low, high = high, min(end, high + size)
        else:
            edges, has_next, has_previous = await ask(last=size, before=all_of_them[low] if low < end else None)
            low, high = max(0, low - size), low
        assert edges == all_of_them[low:high]
        assert has_next == (high < end)
        assert has_previous == (low > 0)


def changed(cursor: str) -> str:
    """Return a cursor with another first character."""
    return ("B" if cursor[0] == "A" else "A") + cursor[1:]
