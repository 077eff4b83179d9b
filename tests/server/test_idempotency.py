"""`Idempotency-Key`: a request that is sent twice is executed once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from server.served import Api, serving
from tickler import ManualClock, PythonTarget, Schedule, StoreUnavailable, Tickler, connect
from tickler.records.kinds import IDEMPOTENCY
from tickler.server.middleware.caller import ADMITTED, CALLER, LOCAL
from tickler.server.middleware.idempotency import LOCK_MS, Idempotency
from tickler.web.problems import Refused

PATH = "/v1/schedules/u1/digest"
TRIGGER = f"{PATH}/trigger"


@pytest.fixture(autouse=True)
async def stored(t: Tickler) -> None:
    await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily", target=PythonTarget("echo")))


async def fires(api: Api) -> int:
    return len((await api.get("/v1/fires")).json["items"])


async def test_the_same_answer_comes_again_and_nothing_is_done_again(api: Api, clock: ManualClock) -> None:
    first = await api.post(TRIGGER, idempotency_key="k1")
    clock.advance(60)
    again = await api.post(TRIGGER, idempotency_key="k1")
    assert (again.status, again.body) == (first.status, first.body) == (202, first.body)
    assert again.headers["content-type"] == first.headers["content-type"]
    assert (first.headers.get("idempotent-replayed"), again.headers["idempotent-replayed"]) == (None, "true")
    assert await fires(api) == 1
    await api.post(TRIGGER, idempotency_key="k2")
    await api.post(TRIGGER)
    assert await fires(api) == 3


async def test_the_version_comes_again_too(api: Api) -> None:
    first = await api.post(f"{PATH}/pause", idempotency_key="k1")
    await api.post(f"{PATH}/resume")
    again = await api.post(f"{PATH}/pause", idempotency_key="k1")
    assert again.headers["etag"] == first.headers["etag"]
    assert first.headers["etag"].startswith('"2-')
    assert (await api.get(PATH)).json["state"] == "active"


async def test_a_patch_is_made_once(api: Api) -> None:
    first = await api.patch(PATH, {"payload": None, "when": "@hourly"}, idempotency_key="k1")
    await api.patch(PATH, {"when": "@daily"})
    again = await api.patch(PATH, {"payload": None, "when": "@hourly"}, idempotency_key="k1")
    assert (again.body, again.headers["etag"]) == (first.body, first.headers["etag"])
    assert again.headers["idempotent-replayed"] == "true"
    assert (await api.get(PATH)).json["when"] == "0 0 * * *"
    assert (await api.patch(PATH, {"when": "@daily"}, idempotency_key="k1")).status == 422


async def test_a_key_is_for_one_request(api: Api) -> None:
    await api.post(TRIGGER, idempotency_key="k1")
    for path, body in ((TRIGGER, {}), (f"{PATH}/pause", None), ("/v1/fires:retry", {})):
        refused = await api.post(path, body, idempotency_key="k1")
        assert (refused.status, refused.field) == (422, "idempotency-key")
    assert await fires(api) == 1


async def test_a_refusal_stays_refused(api: Api) -> None:
    first = await api.post("/v1/schedules/u1/later/trigger", idempotency_key="k1")
    await api.put("/v1/schedules/u1/later", {"when": "@daily", "target": {"type": "python", "handler": "echo"}})
    again = await api.post("/v1/schedules/u1/later/trigger", idempotency_key="k1")
    assert (first.status, again.status, again.headers["content-type"]) == (404, 404, "application/problem+json")


async def test_what_failed_here_may_be_tried_again(t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*args: object) -> None:
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr(t.store.fires, "open", fail)
        assert (await api("POST", TRIGGER, headers={"idempotency-key": "k1"}, check=False)).status == 500
    assert (await api.post(TRIGGER, idempotency_key="k1")).status == 202
    assert await fires(api) == 1


async def test_a_store_that_cannot_remember_it_is_a_503(t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*args: object, **kwargs: object) -> None:
        raise StoreUnavailable("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(t.store.records, "put", fail)
        answer = await api("POST", TRIGGER, headers={"idempotency-key": "k1"}, check=False)
    assert (answer.status, answer.is_problem, answer.headers["retry-after"]) == (503, True, "5")
    assert await fires(api) == 0


async def test_what_was_done_is_answered_even_if_it_cannot_be_remembered(
    t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = t.store.records.put

    async def fail(kind: str, name: str, value: bytes, **options: Any) -> int:
        if b'"done"' in value:
            raise StoreUnavailable("the disk is gone")
        return await put(kind, name, value, **options)

    monkeypatch.setattr(t.store.records, "put", fail)
    assert (await api.post(TRIGGER, idempotency_key="k1")).status == 202
    assert (await api.post(TRIGGER, idempotency_key="k1")).status == 409
    assert await fires(api) == 1


async def test_what_was_done_is_done_once_also_if_who_did_it_cannot_be_remembered(
    t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put = t.store.records.put

    async def fail(kind: str, name: str, value: bytes, **options: Any) -> int:
        if kind.startswith("audit"):
            raise StoreUnavailable("the disk is gone")
        return await put(kind, name, value, **options)

    monkeypatch.setattr(t.store.records, "put", fail)
    answers = [await api.post(TRIGGER, idempotency_key="k1") for _ in range(2)]
    assert [answer.status for answer in answers] == [202, 202]
    assert await fires(api) == 1
    calls = [("PUT", PATH, {"when": "@hourly"}), ("POST", f"{PATH}/pause", None), ("DELETE", PATH, None)]
    assert [(await api(method, path, body)).status for method, path, body in calls] == [200, 200, 204]
    lost = [record.message for record in caplog.records if record.message.startswith("audit entry lost: ")]
    assert lost == [f"audit entry lost: local {action}: the disk is gone" for action in ("triggered", "put", "paused", "deleted")]


@pytest.fixture
def idempotency(t: Tickler) -> tuple[Idempotency, dict[int, asyncio.Event]]:
    """Wrap an app that answers with its call number, once released."""
    go_on: dict[int, asyncio.Event] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        number = len(go_on) + 1
        go_on[number] = asyncio.Event()
        await go_on[number].wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(number).encode()})

    return Idempotency(app, t.store.records, t.clock), go_on


async def ask(idempotency: Idempotency) -> bytes:
    """Send a request, always with the same key."""
    sent: list[Any] = []
    headers = [(b"idempotency-key", b"k1")]
    scope: Any = {"type": "http", "method": "POST", "path": "/v1/tick", "query_string": b"", "headers": headers}
    scope |= {CALLER: LOCAL, ADMITTED: True}

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    await idempotency(scope, receive, send)
    return b"".join(message.get("body", b"") for message in sent)


async def begun(go_on: dict[int, asyncio.Event], number: int) -> None:
    async with asyncio.timeout(20):
        while number not in go_on:
            await asyncio.sleep(0)


async def test_what_was_broken_off_is_not_done_again_as_nobody_knows_how_far_it_came(
    idempotency: tuple[Idempotency, dict[int, asyncio.Event]], clock: ManualClock
) -> None:
    service, go_on = idempotency
    first = asyncio.create_task(ask(service))
    await begun(go_on, 1)
    first.cancel()
    await asyncio.wait([first])
    with pytest.raises(Refused, match="is still running"):
        await ask(service)
    clock.advance(LOCK_MS / 1000)
    second = asyncio.create_task(ask(service))
    await begun(go_on, 2)
    go_on[2].set()
    assert await second == b"2"


async def test_a_key_is_held_as_long_as_its_request_runs(
    t: Tickler, idempotency: tuple[Idempotency, dict[int, asyncio.Event]], clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickler.server.middleware.idempotency.EXTEND_S", 0.001)
    service, go_on = idempotency
    first = asyncio.create_task(ask(service))
    await begun(go_on, 1)
    for _ in range(3):
        clock.advance(LOCK_MS / 1000 - 1)
        async with asyncio.timeout(20):
            while (await t.store.records.list(IDEMPOTENCY, now_ms=clock.now_ms()))[0].expires_at != clock.now_ms() + LOCK_MS:
                await asyncio.sleep(0.001)
    with pytest.raises(Refused, match="is still running"):
        await ask(service)
    go_on[1].set()
    assert [await first, await ask(service)] == [b"1", b"1"]


async def test_a_key_that_is_being_held_when_its_request_ends_is_kept_as_done(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickler.server.middleware.idempotency.EXTEND_S", 0.001)
    async with connect(postgres_url) as t, serving(t) as api:
        await api.put(PATH, {"when": "@daily", "target": {"type": "python", "handler": "echo"}})
        answers = [await api.post(TRIGGER, idempotency_key=f"k{number}") for number in range(40)]
        again = [await api.post(TRIGGER, idempotency_key=f"k{number}") for number in range(40)]
    assert {answer.status for answer in answers} == {202}
    assert [answer.body for answer in again] == [answer.body for answer in answers]


async def test_whoever_was_taken_for_gone_leaves_the_key_to_who_came_after(
    idempotency: tuple[Idempotency, dict[int, asyncio.Event]], clock: ManualClock
) -> None:
    service, go_on = idempotency
    first = asyncio.create_task(ask(service))
    await begun(go_on, 1)
    clock.advance(LOCK_MS / 1000)
    second = asyncio.create_task(ask(service))
    await begun(go_on, 2)
    go_on[1].set()
    assert await first == b"1"
    with pytest.raises(Refused, match="is still running"):
        await ask(service)
    go_on[2].set()
    assert [await second, await ask(service)] == [b"2", b"2"]


async def test_while_the_first_runs_the_second_is_told_to_wait(t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()
    pause = t.store.schedules.change

    async def slowly(*args: Any, **kwargs: Any) -> None:
        began.set()
        await go_on.wait()
        await pause(*args, **kwargs)

    monkeypatch.setattr(t.store.schedules, "change", slowly)
    first = asyncio.create_task(api.post(f"{PATH}/pause", idempotency_key="k1"))
    await began.wait()
    second = await api.post(f"{PATH}/pause", idempotency_key="k1")
    assert (second.status, second.headers["retry-after"]) == (409, "1")
    go_on.set()
    assert (await first).status == 200
    assert (await api.post(f"{PATH}/pause", idempotency_key="k1")).body == (await first).body


async def test_many_at_once_do_it_once(api: Api) -> None:
    answers = await asyncio.gather(*(api.post(TRIGGER, idempotency_key="k1") for _ in range(20)))
    assert {answer.status for answer in answers} <= {202, 409}
    assert len({answer.body for answer in answers if answer.status == 202}) == 1
    assert await fires(api) == 1


async def test_an_answer_is_kept_for_a_day(api: Api, clock: ManualClock) -> None:
    await api.post(TRIGGER, idempotency_key="k1")
    clock.advance(24 * 3600 - 1)
    await api.post(TRIGGER, idempotency_key="k1")
    assert await fires(api) == 1
    clock.advance(2)
    await api.post(TRIGGER, idempotency_key="k1")
    assert await fires(api) == 2


async def test_an_answer_that_is_too_large_is_not_kept_and_says_so(t: Tickler, api: Api) -> None:
    await t.schedules.put(Schedule(owner="u1", key="big", when="@daily", payload="x" * 100_000))
    assert (await api.post("/v1/schedules/u1/big/pause", idempotency_key="k1")).status == 200
    again = await api.post("/v1/schedules/u1/big/pause", idempotency_key="k1")
    assert (again.status, "too large to store" in again.json["detail"]) == (409, True)


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 201, "a\tb", "\x80"])
async def test_a_key_that_cannot_be_is_refused(api: Api, key: str) -> None:
    lines = (
        f"POST {TRIGGER} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nidempotency-key: {key}\r\ncontent-length: 0\r\n\r\n"
    )
    answer = await api.bytes_for(lines.encode("latin-1"))
    assert b" 400 " in answer.split(b"\r\n", 1)[0]
    assert b'"field":"idempotency-key"' in answer


async def test_two_keys_are_refused(api: Api) -> None:
    lines = f"POST {TRIGGER} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nidempotency-key: a\r\nidempotency-key: b\r\n\r\n"
    assert b" 400 " in (await api.bytes_for(lines.encode())).split(b"\r\n", 1)[0]


async def test_a_key_says_nothing_where_repeating_does_no_harm(api: Api) -> None:
    for _ in range(2):
        put = await api.put("/v1/schedules/u1/b", {"when": "@daily"}, idempotency_key="k1")
        assert "idempotent-replayed" not in put.headers
    assert (await api.get("/v1/stats", idempotency_key="k1")).status == 200


async def test_tokens_do_not_share_keys_and_nobody_leaves_none_behind(t: Tickler, api: Api) -> None:
    texts = [(await t.tokens.create(["read", "write"]))[1] for _ in range(2)]
    for text in texts:
        assert (await api.bearing(text).post(TRIGGER, idempotency_key="k1")).status == 202
    assert await fires(api.bearing(texts[0])) == 2
    before = await t.store.records.list("idempotency", now_ms=t.now_ms())
    assert (await api.post(TRIGGER, idempotency_key="k9")).status == 401
    assert await t.store.records.list("idempotency", now_ms=t.now_ms()) == before


async def test_whoever_may_not_do_it_or_asks_for_what_is_not_there_leaves_nothing_behind(t: Tickler, api: Api) -> None:
    _, reader = await t.tokens.create(["read"])
    _, bound = await t.tokens.create(["read", "write"], owner="u1")
    asked = (
        (reader, TRIGGER, 403),
        (reader, "/v1/nothing", 404),
        (reader, "/v1/a/b/c/d/e/f", 404),
        (reader, "/v1/stats", 405),
        (bound, "/v1/tick", 403),
        (bound, "/v1/doctor:repair", 403),
    )
    for number, (text, path, status) in enumerate(asked):
        for _ in range(2):
            assert (await api.bearing(text).post(path, idempotency_key=f"k{number}")).status == status
    assert await t.store.records.list("idempotency", now_ms=t.now_ms()) == []
