"""A tenant who sends much, or what takes long to read: others are answered meanwhile, and nobody has more than their share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from server.served import Api, serving
from server.test_hostile import request
from tickler import Tickler
from tickler.server.entrance import door

HANG_S = 20


async def two_tokens(t: Tickler, api: Api) -> tuple[Api, Api]:
    greedy, other = [(await t.tokens.create(["read", "write"]))[1] for _ in range(2)]
    return api.bearing(greedy), api.bearing(other)


@asynccontextmanager
async def slow_put(api: Api, length: int) -> AsyncIterator[None]:
    """Says how long its body is, and sends none of it."""
    headers = [f"{name}: {value}".encode() for name, value in api.headers.items()]
    head = request("PUT", "/v1/schedules/u1/slow", b"content-type: application/json", b"content-length: %d" % length, *headers)
    _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    try:
        writer.write(head)
        await asyncio.sleep(0.1)
        yield
    finally:
        writer.close()


async def until(api: Api, method: str, path: str, body: bytes, status: int) -> None:
    """It is answered so, sooner or later."""
    async with asyncio.timeout(HANG_S):
        while (await api(method, path, body, headers={"content-type": "application/json"})).status != status:
            await asyncio.sleep(0.01)


async def test_a_token_has_one_import_at_once(t: Tickler) -> None:
    line = json.dumps({"owner": "u1", "key": "k", "when": "@daily"}).encode() + b"\n"
    go_on = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield line
        await go_on.wait()

    async with serving(t) as api:
        greedy, other = await two_tokens(t, api)
        first = asyncio.create_task(greedy("POST", "/v1/schedules:import", slowly()))
        await asyncio.sleep(0.1)
        refused = await greedy("POST", "/v1/schedules:import", line)
        assert (refused.status, refused.is_problem, refused.headers["retry-after"]) == (429, True, "1")
        assert refused.json["detail"] == "at most 1 import with one token at once: wait until one has ended"
        assert (await other("POST", "/v1/schedules:import", line)).lines == [{"line": 1, "owner": "u1", "key": "k"}]
        assert (await greedy.get("/v1/schedules")).status == 200
        go_on.set()
        assert (await first).status == 200
        await until(greedy, "POST", "/v1/schedules:import", line, 200)


async def test_the_bodies_of_one_token_hold_so_many_bytes_together(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MAX_HELD_BYTES", 1_000)
    path, body = "/v1/schedules/u1/k", json.dumps({"when": "@daily", "payload": "x" * 200}).encode()
    async with serving(t) as api:
        greedy, other = await two_tokens(t, api)
        async with slow_put(greedy, 900):
            assert (await greedy("PUT", path, body, headers={"content-type": "application/json"})).status == 429
            assert (await other("PUT", path, body, headers={"content-type": "application/json"})).status == 201
            assert (await greedy.get("/v1/schedules")).status == 200
        await until(greedy, "PUT", path, body, 200)
        alone = json.dumps({"when": "@daily", "payload": "x" * 2_000}).encode()
        assert (await greedy("PUT", path, alone, headers={"content-type": "application/json"})).status == 200
