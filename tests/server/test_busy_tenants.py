"""Tenants that send much, or bodies that are slow to read, do not delay others and stay within their limits."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from server.served import Api, serving
from server.test_hostile import request
from tickler import Tickler
from tickler.database import pacing
from tickler.model import payload, schedule_json
from tickler.model.schedule_json import MAX_SIGNS, read_schedule_json
from tickler.schedules import payload_patch
from tickler.server import json_body
from tickler.server.middleware import gateway
from tickler.transfer import ndjson as bulk

HANG_S = 20
IMPORT = "/v1/schedules:import"
JSON = {"content-type": "application/json"}


async def two_tokens(t: Tickler, api: Api) -> tuple[Api, Api]:
    greedy, other = [(await t.tokens.create(["read", "write"]))[1] for _ in range(2)]
    return api.bearing(greedy), api.bearing(other)


@asynccontextmanager
async def slow_put(api: Api, length: int) -> AsyncIterator[None]:
    """Announce a body, and send none of it."""
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
    """Wait until the status is the expected one."""
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
        assert refused.json["detail"] == "at most 1 import per token at once: wait until one has ended"
        assert (await other("POST", "/v1/schedules:import", line)).lines == [{"line": 1, "owner": "u1", "key": "k"}]
        assert (await greedy.get("/v1/schedules")).status == 200
        go_on.set()
        assert (await first).status == 200
        await until(greedy, "POST", "/v1/schedules:import", line, 200)


async def test_the_bodies_of_one_token_hold_so_many_bytes_together(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_HELD_BYTES", 1_000)
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


async def test_others_are_answered_while_many_import_what_takes_long_to_read(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports take turns by line, so few lines are read between two responses, however many imports run."""
    monkeypatch.setattr(pacing, "TURN_S", 0)
    tokens = [(await t.tokens.create(["write"]))[1] for _ in range(10)]
    lines = b"".join(
        json.dumps({"owner": "u1", "key": "k", "when": "@daily", "tz": f"Nowhere/{number}"}).encode() + b"\n"
        for number in range(200)
    )
    count, counts = 0, [0]
    read = bulk._read

    def counted(*args: Any) -> Any:
        nonlocal count
        count += 1
        return read(*args)

    monkeypatch.setattr(bulk, "_read", counted)
    async with serving(t) as api:
        imports = [asyncio.create_task(api.bearing(text)("POST", IMPORT, lines)) for text in tokens]
        while not all(each.done() for each in imports):
            assert (await api.get("/health/live")).status == 200
            counts.append(count)
        for each in imports:
            assert [line["error"][:17] for line in (await each).lines] == ["unknown time zone"] * 200
    assert count == 2_000
    assert max(later - sooner for sooner, later in pairwise(counts)) < 500


async def test_long_bodies_of_one_caller_are_read_one_by_one_and_hold_up_no_other(
    t: Tickler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other callers' long bodies wait for at most one of this caller's, and short ones for none."""
    go_on = threading.Event()
    read: list[bytes] = []

    def slowly(body: bytes) -> Any:
        if len(body) > pacing.LONG_BYTES:
            assert go_on.wait(HANG_S)
            read.append(body[-3:-2])
        return read_schedule_json(body)

    def long(mark: bytes) -> bytes:
        return b'{"when": "@daily", "payload": "' + b"x" * pacing.LONG_BYTES + mark + b'"}'

    async with serving(t) as api:
        greedy, other = await two_tokens(t, api)
        monkeypatch.setattr(json_body, "read_schedule_json", slowly)
        waiting = [asyncio.create_task(greedy("PUT", f"/v1/schedules/u1/{n}", long(b"G"), headers=JSON)) for n in range(5)]
        await asyncio.sleep(0.1)
        waiting.append(asyncio.create_task(other("PUT", "/v1/schedules/u2/long", long(b"O"), headers=JSON)))
        try:
            await asyncio.sleep(0.1)
            assert (await greedy.put("/v1/schedules/u1/short", {"when": "@daily"})).status == 201
            assert not any(each.done() for each in waiting)
        finally:
            go_on.set()
        assert [(await each).status for each in waiting] == [201] * 6
    assert b"".join(read) == b"GOGGGG"


async def test_what_has_more_in_it_than_a_schedule_can_is_refused_unread(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(data: bytes) -> Any:
        raise AssertionError("read")

    monkeypatch.setattr("tickler.model.schedule_json.read_json", never)
    body = b'{"owner": "u1", "key": "k", "when": "@daily", "payload": [' + b"[]," * (MAX_SIGNS // 3) + b"[]]}"
    async with serving(t) as api:
        refused = await api("PUT", "/v1/schedules/u1/k", body, headers=JSON)
        says = "has more values than a payload of 262144 bytes can have: store a reference"
        assert (refused.status, refused.json["detail"]) == (400, f"the body {says}")
        assert (await api("POST", IMPORT, body)).lines == [{"line": 1, "error": says}]


async def test_no_long_payload_is_decoded_encoded_or_merged_on_the_loop(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a megabyte of brackets would block the event loop for a tenth of a second."""
    on_loop: list[str] = []
    loop_thread = threading.get_ident()

    def watched(module: Any, name: str) -> None:
        work = getattr(module, name)

        def noted(*args: Any) -> Any:
            if threading.get_ident() == loop_thread and len(msgspec.json.encode(args)) > 1_000:
                on_loop.append(name)
            return work(*args)

        monkeypatch.setattr(module, name, noted)

    for module, name in ((payload, "_decode"), (schedule_json, "_encode_payload"), (payload_patch, "merge_patch")):
        watched(module, name)
    path = "/v1/schedules/u1/k"
    brackets: list[Any] = [[]] * (pacing.LONG_BYTES // 3)
    async with serving(t) as api:
        assert (await api.put(path, {"when": "@daily", "payload": {"a": brackets}})).status == 201
        assert (await api.put(path, {"when": "@daily", "payload": {"b": brackets}})).status == 200
        assert (await api.patch(path, {"when": "@hourly"})).status == 200
        assert (await api.patch(path, {"payload": {"c": 1}})).json["payload"] == {"b": brackets, "c": 1}
        assert (await api.patch(path, {"payload": brackets})).json["payload"] == brackets
        line = json.dumps({"owner": "u1", "key": "k", "when": "@daily", "payload": {"d": brackets}}).encode()
        assert (await api("POST", IMPORT, line)).lines == [{"line": 1, "owner": "u1", "key": "k"}]
        assert (await api.put(path, {"when": "@daily"})).headers["tickler-removed"] == "payload"
        assert (await api("POST", IMPORT, line)).lines == [{"line": 1, "owner": "u1", "key": "k"}]
        for page in ("/schedules/u1/k", "/schedules/u1/k/edit"):
            shown = await api.get(page, accept="text/html")
            assert (shown.status, shown.body.count(b"[],")) == (200, len(brackets) - 1)
    assert on_loop == []
