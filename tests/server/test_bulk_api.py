"""`/v1/schedules:import` and `:export`: streams of schedules, valid or not."""

from __future__ import annotations

import asyncio
import http.client
import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from server.served import NDJSON, Api, serving
from tickler import Schedule, StoreUnavailable, Tickler, connect
from tickler.errors import PartlyWritten
from tickler.server.settings import ServerSettings
from tickler.server.spooled_response import SpooledResponse
from tickler.web import body_limits as incoming

IMPORT, EXPORT = "/v1/schedules:import", "/v1/schedules:export"


def line(key: str, **fields: Any) -> bytes:
    return json.dumps({"owner": "u1", "key": key, "when": "@daily", **fields}).encode() + b"\n"


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]
        await asyncio.sleep(0)


async def count(t: Tickler) -> int:
    found, after = 0, None
    while True:
        page = await t.schedules.list(limit=1_000, after=after)
        found, after = found + len(page.items), page.next
        if after is None:
            return found


@pytest.mark.parametrize("size", [1, 7, 1_000, 100_000])
async def test_bad_lines_among_good_ones_are_refused_and_stop_nothing(t: Tickler, api: Api, size: int) -> None:
    data = b"\xef\xbb\xbf" + b"".join(
        [
            line("a"),
            b"\n",
            line("b", when="no"),
            b"nonsense\n",
            line("c", payload={"x": "é"}),
            b"[]\n",
            b'{"owner": "u1"}\n',
            b'{"owner":"u1","owner":"u2","key":"d","when":"@daily"}\n',
            b'{"key": "\xff"}\n',
            line("e", when="at(2001-01-01T00:00)"),
            line("a", payload=2),
            b"   \r\n",
            line("f").rstrip(b"\n"),
        ]
    )
    answer = await api("POST", IMPORT, pieces(data, size) if size < 100_000 else data)
    assert (answer.status, answer.headers["content-type"]) == (200, NDJSON)
    results = {each["line"]: each.get("error") for each in answer.lines}
    assert list(results) == [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13]
    assert [number for number, error in results.items() if error is None] == [1, 5, 11, 13]
    assert answer.lines[1]["owner"] == "u1"
    assert "minute of 'no'" in results[3] or "no" in results[3]
    assert "is not UTF-8" in results[9]
    assert "'owner' occurs twice" in results[8]
    assert "would never fire" in results[10]
    stored = await t.schedules.get("u1", "a")
    assert stored is not None
    assert stored.payload == 2
    (deed,) = (await api.get("/v1/audit")).json["items"]
    assert (deed["action"], deed["detail"]) == ("imported", "4 put, 7 refused")


async def test_what_is_exported_can_be_imported_as_it_is(t: Tickler, api: Api) -> None:
    await t.schedules.put_many(
        Schedule(owner=f"u{n % 3}", key=f"k/{n}", when="30 2 * * *", tz="Europe/Berlin", payload={"n": n}) for n in range(450)
    )
    exported = await api.get(EXPORT)
    assert exported.headers["content-type"] == NDJSON
    assert len(exported.lines) == 450
    async with connect("memory://", clock=t.clock) as other, serving(other) as there:
        results = (await there.post(IMPORT, exported.body, content_type=NDJSON)).lines
        assert all("error" not in each for each in results)
        assert (await there.get(EXPORT)).body == exported.body
        assert (await there.get(f"{EXPORT}?owner=u1")).lines == [each for each in exported.lines if each["owner"] == "u1"]
        assert (await there.get(f"{EXPORT}?owner=nobody")).body == b""
    assert (await api.get(f"{EXPORT}?limit=1")).field == "limit"
    assert (await api.get(f"{EXPORT}?owner=")).field == "owner"


async def test_a_line_that_is_too_long_is_refused_and_the_next_is_read(t: Tickler, api: Api) -> None:
    data = b'{"owner":"u1","key":"long","payload":"' + b"x" * 3_000_000 + b'"}\n' + line("after")
    first, second = (await api.post(IMPORT, pieces(data, 65_536))).lines
    assert "is longer than" in first["error"]
    assert second == {"line": 2, "owner": "u1", "key": "after"}


async def test_an_empty_import_puts_nothing(api: Api) -> None:
    assert (await api.post(IMPORT, b"")).body == b""
    assert (await api.post(IMPORT)).body == b""
    assert (await api.post(f"{IMPORT}?owner=u1", b"")).field == "owner"
    refused = await api.post(IMPORT, line("a"), idempotency_key="k")
    assert (refused.status, refused.field) == (400, "idempotency-key")


async def test_answers_come_while_the_rest_is_still_being_sent(t: Tickler, api: Api) -> None:
    """A batch is answered before the next arrives."""
    answered = asyncio.Event()

    async def sent() -> AsyncIterator[bytes]:
        yield b"".join(line(f"a{n}") for n in range(1_001))
        await answered.wait()
        yield line("last")

    async with api.session.post(api.url(IMPORT), data=sent()) as response:
        async with asyncio.timeout(20):
            assert json.loads(await response.content.readline())["line"] == 1
        assert await count(t) == 1_000
        answered.set()
        rest = (await response.content.read()).splitlines()
    assert json.loads(rest[-1]) == {"line": 1_002, "owner": "u1", "key": "last"}
    assert await count(t) == 1_002


async def test_what_was_put_stays_put_when_a_client_goes_away(t: Tickler, api: Api, caplog: pytest.LogCaptureFixture) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    body = b"".join(line(f"k{n}") for n in range(1_500))
    writer.write(f"POST {IMPORT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body) + 1}\r\n\r\n".encode() + body)
    assert b"200" in await reader.readline()
    await reader.readuntil(b'"line":1000')
    writer.transport.abort()
    async with asyncio.timeout(20):
        while not (deeds := (await t.audit.list()).items):
            await asyncio.sleep(0.01)
    assert deeds[0].detail == "1000 put, 0 refused"
    assert await count(t) == 1_000
    assert (await api.get("/v1/stats")).json["sleeping"] == 1_000
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_stream_that_stops_is_given_up_with_a_last_line(t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "IDLE_S", 0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    body = b"".join(line(f"k{n}") for n in range(1_001))
    writer.write(f"POST {IMPORT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900000\r\n\r\n".encode() + body)
    async with asyncio.timeout(20):
        await reader.readuntil(b'"line":1000')
        last = await reader.readuntil(b"0\r\n\r\n")
    writer.close()
    assert b'{"line":1001,"error":"nothing from this line on was put: the body did not arrive in time' in last
    assert await count(t) == 1_000


async def test_the_last_line_says_what_is_so_when_some_were_written(
    t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = t.store.schedules.change
    failure: StoreUnavailable = StoreUnavailable("the disk is gone")

    async def until_the_second(ids: Any, *args: Any, **kwargs: Any) -> None:
        if len(ids) < 3:
            raise failure
        await change(ids, *args, **kwargs)

    monkeypatch.setattr(t.store.schedules, "change", until_the_second)
    body = b"".join([*map(line, "abc"), line("d", when="at(2001-01-01T00:00)"), *map(line, "ef")])
    answer = await api.post(IMPORT, body)
    assert answer.lines[-1] == {"line": 4, "error": "nothing from this line on was put: the disk is gone"}
    assert [(each["line"], each["key"]) for each in answer.lines[:-1]] == [(1, "a"), (2, "b"), (3, "c")]
    assert await count(t) == 3
    failure = PartlyWritten("dynamodb", 1, 2, TimeoutError("no answer"))
    assert (await api.post(IMPORT, body)).lines[-1]["error"].startswith("some from this line on were put, import them again: ")


async def test_an_answer_that_nobody_reads_is_made_no_further_than_it_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.server.spooled_response.MAX_UNREAD_BYTES", 1_000)
    made, sent, reads = 0, bytearray(), asyncio.Event()

    async def pieces_of_it() -> AsyncIterator[bytes]:
        nonlocal made
        for number in range(500):
            made += 1
            await asyncio.sleep(0)
            yield b"%03d\n" % number * 10

    async def send(message: Any) -> None:
        await reads.wait()
        sent.extend(message.get("body", b""))

    async def receive() -> Any:
        raise AssertionError("it leaves the request alone")

    response = SpooledResponse(iterator=pieces_of_it())
    sending = asyncio.create_task(response.send_body(send, receive))
    for _ in range(2_000):
        await asyncio.sleep(0)
    assert made <= 1_000 // 40 + 3
    reads.set()
    async with asyncio.timeout(20):
        await sending
    assert sent == b"".join(b"%03d\n" % number * 10 for number in range(500))


async def test_a_client_that_sends_everything_before_it_reads_gets_its_answer(t: Tickler, api: Api) -> None:
    """Most HTTP libraries do so. The response exceeds the socket buffers."""
    body = b"".join(line("x" * 500, when="no") for n in range(20_000))

    def ask() -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=30)
        connection.request("POST", IMPORT, body)
        answer = connection.getresponse().read()
        connection.close()
        return answer

    assert len((await asyncio.to_thread(ask)).splitlines()) == 20_000


async def test_an_import_may_be_longer_than_a_body_may_be(t: Tickler) -> None:
    async with serving(t, ServerSettings(max_body=1_000)) as api:
        body = b"".join(line(f"k{n}") for n in range(100))
        assert len((await api.post(IMPORT, body)).lines) == 100
        assert (await api.put("/v1/schedules/u1/a", {"when": "@daily", "payload": "x" * 1_000})).status == 413


async def test_an_export_of_3000_is_never_in_memory_as_a_whole() -> None:
    async with connect("sqlite://") as t, serving(t) as api:
        for start in range(0, 3_000, 500):
            await t.schedules.put_many(
                Schedule(owner="u1", key=f"{n:05}", when="@daily", payload="x" * 10_000) for n in range(start, start + 500)
            )
        tracemalloc.start()
        try:
            size = lines = 0
            async with api.session.get(api.url(EXPORT)) as response:
                async for chunk in response.content.iter_any():
                    size, lines = size + len(chunk), lines + chunk.count(b"\n")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert lines == 3_000
    assert size > 30_000_000
    assert peak < 20_000_000


async def test_a_schedule_that_cannot_be_written_down_has_a_line_that_says_so(sqlite_url: str) -> None:
    import sqlite3

    async with connect(sqlite_url) as t, serving(t) as api:
        for key in ("a", "b", "c"):
            await t.schedules.put(Schedule(owner="u1", key=key, when="@daily"))
        with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as behind_its_back:
            behind_its_back.execute("UPDATE tickler_schedules SET body = 'no' WHERE key = 'b'")
        behind_its_back.close()
        exported = await api.get(EXPORT)
        assert sorted((each["key"], "error" in each) for each in exported.lines) == [("a", False), ("b", True), ("c", False)]
        results = (await api.post(IMPORT, exported.body)).lines
        assert [each["key"] for each in results if "error" in each] == ["b"]


async def test_every_owner_is_told_of_an_import_for_all(t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    token, text = await t.tokens.create(["read", "write"], name="ops")
    monkeypatch.setattr("tickler.server.audit_log.MAX_OWNERS", 3)
    body = line("a") + line("b") + line("c", when="no") + line("a", owner="u2")
    await api.bearing(text).post(IMPORT, body)
    for owner, detail in (("u1", "2 of this owner"), ("u2", "1 of this owner")):
        (deed,) = (await t.audit.list(owner=owner)).items
        assert (deed.by, deed.token_id, deed.action, deed.detail) == ("ops", token.id, "imported", detail)
    assert {deed.detail for deed in (await t.audit.list()).items if deed.owner is None} == {"3 put, 1 refused, of 2 owners"}
    await api.bearing(text).post(IMPORT, b"".join(line("z", owner=f"v{n}") for n in range(5)))
    deeds = [deed for deed in (await t.audit.list()).items if deed.owner is None or deed.owner.startswith("v")]
    assert len(deeds) == 1 + 1 + 3
    assert "5 put, 0 refused, of more than 3 owners, recorded for the first" in {deed.detail for deed in deeds}
