"""Ticks, stats, doctor, audit log, health, metrics and the event stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest

from server.served import Api, serving
from tickler import ManualClock, PythonTarget, Schedule, StoreUnavailable, Tickler, connect
from tickler.access.tokens import NONE_REMEMBERED_MS
from tickler.model.delivery import Delivery
from tickler.observe.doctor import DEPENDS_ON, QUICK, name_of
from tickler.server.api import system
from tickler.server.app import make_app
from tickler.server.event_stream import EventStream
from tickler.server.middleware.sessions import page_sessions
from tickler.server.middleware.uvicorn_protocol import PROTOCOLS
from tickler.server.settings import ServerSettings
from tickler.server.single_flight import SingleFlight
from tickler.server.stats import stats

PATH = "/v1/schedules/u1/digest"
ECHO = {"when": "0 * * * *", "target": {"type": "python", "handler": "echo"}}


@asynccontextmanager
async def watching(api: Api) -> AsyncIterator[aiohttp.ClientResponse]:
    async with api.session.get(api.url("/v1/live"), headers=api.headers) as response:
        assert response.status == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield response


async def event(response: aiohttp.ClientResponse, kind: str) -> Any:
    """Return the next event of a kind."""
    found = ""
    async with asyncio.timeout(20):
        while True:
            line = (await response.content.readline()).decode().rstrip("\r\n")
            if line.startswith("event: "):
                found = line.removeprefix("event: ")
            if line.startswith("data: ") and found == kind:
                return json.loads(line.removeprefix("data: "))


# Ticks.


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_outside_beat_claims_and_delivers_what_is_due(t: Tickler, api: Api, clock: ManualClock, method: str) -> None:
    got: list[str] = []

    @t.handler("digest")
    async def digest(delivery: Delivery) -> None:
        got.append(delivery.key)

    await t.schedules.put(Schedule(owner="u1", key="digest", when="0 * * * *", target=PythonTarget("digest")))
    assert (await api(method, "/v1/tick")).json["claimed"] == 0
    clock.advance(3600)
    summary = (await api(method, "/v1/tick?budget_ms=5000")).json
    assert (summary["claimed"], summary["delivered"], got) == (1, 1, ["digest"])
    assert (await api(method, "/v1/tick")).json["claimed"] == 0


@pytest.mark.parametrize(
    "query", ["budget_ms=0", "budget_ms=300001", "budget_ms=x", "budget_ms=1.5", "limit=3", "budget_ms=1&budget_ms=2"]
)
async def test_a_beat_that_does_not_fit_is_refused(api: Api, query: str) -> None:
    for method in ("GET", "POST"):
        assert (await api(method, f"/v1/tick?{query}")).status == 400
    assert (await api.post("/v1/tick", {"budget_ms": 7})).status == 400


# Numbers.


async def test_numbers_say_how_it_stands(t: Tickler, api: Api, clock: ManualClock) -> None:
    for key, when in (("a", "0 * * * *"), ("b", "0 0 * * *"), ("c", "30 * * * *")):
        await t.schedules.put(Schedule(owner="u1", key=key, when=when, target=PythonTarget("echo")))
    await t.schedules.pause("u1", "c")
    await t.trigger("u1", "b")
    clock.advance(3600)
    found = (await api.get("/v1/stats")).json
    assert {name: found[name] for name in ("sleeping", "due", "late", "open", "dead", "workers_alive")} == {
        "sleeping": 1,
        "due": 1,
        "late": 0,
        "open": 1,
        "dead": 0,
        "workers_alive": 0,
    }
    assert found["next_due_at"] == found["now_ms"] == clock.now_ms()
    clock.advance(61)
    assert (await api.get("/v1/stats")).json["late"] == 1
    assert (await api.get("/v1/stats?owner=u1")).field == "owner"


async def test_what_is_to_come_is_counted_by_hour_and_minute(t: Tickler, api: Api) -> None:
    await t.schedules.put(Schedule(owner="u1", key="a", when="*/10 * * * *"))
    forecast = (await api.get("/v1/forecast")).json
    assert (sum(forecast["minutes"]), forecast["hours"][1]) == (5, 6)


async def test_the_doctor_finds_and_mends(t: Tickler, api: Api, clock: ManualClock) -> None:
    await t.schedules.put(Schedule(owner="u1", key="a", when="0 * * * *", target=PythonTarget("echo")))
    clock.advance(7200)
    found = (await api.get("/v1/doctor")).json
    assert [each["check"] for each in found["findings"]] == ["no-worker"]
    needs_a_worker = {"no-worker", *DEPENDS_ON}
    assert found["passed"] == [name for check in QUICK if (name := name_of(check)) not in needs_a_worker]
    assert (await api.get("/v1/doctor?deep=true")).status == 200
    assert (await api.get("/v1/doctor?deep=yes")).field == "deep"
    assert (await api.post("/v1/doctor:repair")).status == 200
    assert (await api.post("/v1/doctor:repair", {"deep": True})).status == 400
    assert (await api.get("/v1/audit")).json["items"] == [], "nothing was repaired"
    await t.schedules.put(Schedule(owner="u1", key="b", when="0 * * * *"))
    t.store._tables.index.clear()  # type: ignore[attr-defined]
    assert (await api.post("/v1/doctor:repair")).json["findings"][0]["repaired"] == 2
    (deed,) = (await api.get("/v1/audit")).json["items"]
    assert (deed["action"], deed["detail"]) == ("repaired", "unindexed: 2")


# Who did what.


async def test_everything_is_looked_at_by_one_at_a_time(t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()
    doctor = t.doctor

    async def slowly(**how: Any) -> Any:
        if how.get("deep"):
            began.set()
            await go_on.wait()
        return await doctor(**how)

    monkeypatch.setattr(t, "doctor", slowly)
    first = asyncio.create_task(api.get("/v1/doctor?deep=true"))
    await began.wait()
    refused = [await api.get("/v1/doctor?deep=true"), await api.post("/v1/doctor:repair", idempotency_key="k1")]
    assert [(each.status, each.headers["retry-after"]) for each in refused] == [(409, "10")] * 2
    assert (await api.get("/v1/doctor")).status == 200
    go_on.set()
    assert (await first).status == 200
    assert (await api.post("/v1/doctor:repair", idempotency_key="k1")).status == 200


async def test_deeds_come_in_pages_the_latest_first(t: Tickler, api: Api, clock: ManualClock) -> None:
    for number in range(7):
        clock.advance(1)
        await t.audit.record("ada", f"did {number}", owner=f"u{number % 2}")
    found: list[str] = []
    after = ""
    while True:
        page = (await api.get(f"/v1/audit?limit=3{after}")).json
        found += [deed["action"] for deed in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert found == [f"did {number}" for number in range(6, -1, -1)]
    assert [deed["action"] for deed in (await api.get("/v1/audit?owner=u1")).json["items"]] == ["did 5", "did 3", "did 1"]


async def test_what_a_newer_version_wrote_down_hides_nothing_else(t: Tickler, api: Api) -> None:
    await api.put(PATH, ECHO)
    for kind in ("audit", "worker"):
        await t.store.records.put(kind, "000-newer", b'{"at": "noon", "by": ["two"]}', now_ms=t.now_ms())
    assert [deed["action"] for deed in (await api.get("/v1/audit")).json["items"]] == ["put"]
    assert (await api("GET", "/audit", headers={"accept": "text/html"})).status == 200
    assert (await api.get("/v1/stats")).json["workers"] == []


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("after=%20", 422, "after"),
        ("limit=0", 400, "limit"),
        ("by=x", 400, "by"),
        ("after=", 422, "after"),
        ("owner=%0A", 422, "owner"),
    ],
)
async def test_parameters_that_do_not_fit_are_refused_by_name(api: Api, query: str, status: int, field: str) -> None:
    refused = await api.get(f"/v1/audit?{query}")
    assert (refused.status, refused.field) == (status, field)


# Health, metrics, description.


async def test_health_metrics_and_description_are_there(api: Api) -> None:
    assert (await api.get("/health/live")).body == b"alive"
    assert (await api.get("/health/ready")).body == b"ready"
    metrics = await api.get("/metrics")
    assert b"tickler_due" in metrics.body
    assert metrics.headers["content-type"].count("charset") <= 1
    assert (await api.get("/openapi.json")).json["openapi"] == "3.1.0"


async def test_a_store_that_does_not_answer_is_a_503_and_says_when_to_come_back(
    t: Tickler, api: Api, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*args: object, **kwargs: object) -> None:
        raise StoreUnavailable("the disk is gone")

    for part in ("next_due", "count"):
        monkeypatch.setattr(t.store.index, part, fail)
    monkeypatch.setattr(t.store.schedules, "get", fail)
    monkeypatch.setattr(t.store.schedules, "change", fail)
    monkeypatch.setattr(t.store.schedules, "list", fail)
    with monkeypatch.context() as patch:
        for part in ("get", "list", "put"):
            patch.setattr(t.store.records, part, fail)
        assert (await api.get("/health/live")).status == 200
        assert (await api.get("/health/live", authorization=f"Bearer tk_{'0' * 16}_{'0' * 64}")).status == 200
        assert (await api.get("/static/style.css")).status == 200
    for method, path, body in (
        ("GET", "/health/ready", None),
        ("GET", PATH, None),
        ("PUT", PATH, ECHO),
        ("GET", "/v1/schedules", None),
        ("GET", "/v1/schedules:export", None),
        ("GET", "/v1/stats", None),
    ):
        answer = await api(method, path, body, check=False)
        assert (answer.status, answer.is_problem, answer.headers["retry-after"]) == (503, True, "5"), path
    results = (await api.post("/v1/schedules:import", b'{"owner":"u1","key":"a","when":"@daily"}\n')).lines
    assert results == [{"line": 1, "error": "nothing from this line on was put: the disk is gone"}]
    monkeypatch.setattr(t.store.records, "list", fail)
    clock.advance(NONE_REMEMBERED_MS / 1000)
    answer = await api("GET", "/v1/preview?when=@daily", check=False)
    assert (answer.status, answer.is_problem, answer.headers["retry-after"]) == (503, True, "5")


async def test_what_is_unexpected_is_told_to_the_log_and_to_nobody_else(
    t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr(t.store.schedules, "get", fail)
    answer = await api("GET", PATH, check=False)
    assert (answer.status, answer.is_problem) == (500, True)
    assert b"swordfish" not in answer.body
    assert "swordfish" in caplog.text


@pytest.mark.parametrize("method", ["PATCH", "DELETE", "TRACE", "FROBNICATE"])
@pytest.mark.parametrize("path", ["/v1/schedules", "/v1/tick", "/health/live", "/openapi.json", "/v1/fires:retry"])
async def test_a_method_that_a_path_does_not_take_is_405_with_those_it_does(api: Api, method: str, path: str) -> None:
    answer = await api(method, path)
    assert answer.status in (400, 405) if method == "FROBNICATE" else 405
    assert answer.headers["content-type"] == "application/problem+json"
    if answer.status == 405:
        allowed = answer.headers["allow"].split(", ")
        assert ("HEAD" in allowed) == ("GET" in allowed and path != "/v1/tick")
        assert answer.is_problem


@pytest.mark.parametrize(
    "path",
    [
        "/", "/login", "/schedules", "/static/style.css", "/health/live", "/health/ready", "/metrics", "/openapi.json", PATH,
        "/v1/schedules", "/v1/schedules:export", "/v1/stats", "/v1/preview?when=@daily", "/v1/nothing", "/v1/stats?x=1",
    ],
)  # fmt: skip
async def test_the_head_of_what_can_be_got_can_be_asked_for_alone(api: Api, path: str) -> None:
    await api.put(PATH, ECHO)
    whole, head = await api.get(path), await api("HEAD", path)
    assert (head.status, head.body) == (whole.status, b"")
    names = {name.lower() for name in whole.headers} - {"transfer-encoding", "date"}
    if path == "/metrics":  # counts what was asked
        names -= {"content-length"}
    assert {name: head.headers.get(name) for name in names} == {name: whole.headers[name] for name in names}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_head_of_what_never_ends_ends_and_the_connection_goes_on(t: Tickler, protocol: type[asyncio.Protocol]) -> None:
    live = EventStream()
    head = b"HEAD /v1/live HTTP/1.1\r\nhost: localhost\r\n\r\n"
    last = b"HEAD /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    async with serving(t, app=make_app(t, ServerSettings(), event_stream=live), protocol=protocol) as api:
        answers = await api.bytes_for(head * 2 + last)
        assert answers.count(b"HTTP/1.1 200 OK\r\n") == 3
        assert answers.endswith(b"\r\n\r\n")
        async with asyncio.timeout(10):
            while live._subscribers:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("path", ["/v1/tick", "/v1/fires:retry", "/v1/doctor:repair"])
async def test_asking_for_a_head_does_nothing(api: Api, path: str) -> None:
    answer = await api("HEAD", path)
    assert (answer.status, answer.body, "HEAD" in answer.headers["allow"]) == (405, b"", False)


# What happens right now.


async def test_those_who_watch_see_a_fire_as_it_happens(t: Tickler, api: Api) -> None:
    await api.put(PATH, ECHO)
    async with watching(api) as response:
        assert (await event(response, "stats"))["sleeping"] == 1
        fire = (await api.post(f"{PATH}/trigger")).json
        await api.post("/v1/tick")
        seen = await event(response, "fire")
        assert (seen["fire_id"], seen["owner"], seen["key"], seen["happened"]) == (fire["id"], "u1", "digest", "delivered")
    async with watching(api) as response:
        assert (await event(response, "fire"))["fire_id"] == fire["id"]


async def test_what_happens_while_the_numbers_are_counted_is_seen_too(
    t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.put(PATH, ECHO)
    await api.post(f"{PATH}/trigger")

    async def slowly(*args: Any) -> Any:
        await t.tick()
        return await stats(*args)

    monkeypatch.setattr(system, "stats", slowly)
    async with watching(api) as response:
        assert (await event(response, "stats"))["open"] == 0
        assert (await event(response, "fire"))["key"] == "digest"


async def test_a_runner_in_the_same_process_is_seen_and_nobody_is_kept_who_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "PULSE_S", 0.05)
    async with connect("memory://") as t:
        live = EventStream()
        async with serving(t, app=make_app(t, ServerSettings(), event_stream=live)) as api:
            running = asyncio.create_task(t.run())
            await api.put(PATH, ECHO)
            async with watching(api) as response:
                await api.post(f"{PATH}/trigger")
                assert (await event(response, "fire"))["happened"] == "delivered"
                for _ in range(2):
                    assert (await event(response, "stats"))["open"] == 0
                assert len(live._subscribers) == 1
            async with asyncio.timeout(20):
                while live._subscribers:
                    await asyncio.sleep(0.01)
            t.stop()
            await running


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll often; the clock still decides how much time has passed."""
    monkeypatch.setattr(system, "PULSE_S", 0.02)


async def ended(response: aiohttp.ClientResponse) -> bool:
    """Read a stream to its end; True if it ended cleanly."""
    async with asyncio.timeout(20):
        await response.content.read()
    return response.content.at_eof()


@pytest.mark.usefixtures("hasty")
async def test_whose_token_expires_or_is_revoked_watches_no_longer(t: Tickler, api: Api, clock: ManualClock) -> None:
    _, keeper = await t.tokens.create(["read"])
    _, short = await t.tokens.create(["read"], expires_at=clock.now_ms() + 3_000)
    made, long = await t.tokens.create(["read"])
    async with (
        watching(api.bearing(keeper)) as kept,
        watching(api.bearing(short)) as expiring,
        watching(api.bearing(long)) as revoked,
    ):
        for response in (kept, expiring, revoked):
            await event(response, "stats")
        clock.advance(3)
        assert await ended(expiring)
        await event(revoked, "stats")
        await t.tokens.revoke(made.id)
        clock.advance(3)
        assert await ended(revoked)
        while (await event(kept, "stats"))["now_ms"] < clock.now_ms():
            pass


@pytest.mark.usefixtures("hasty")
async def test_who_signs_out_watches_no_longer(t: Tickler, clock: ManualClock) -> None:
    token, _ = await t.tokens.create(["read"])
    sessions = page_sessions(t.store.records, clock, ServerSettings())
    cookies = [(await sessions.cookie_for(token.id)).partition(";")[0] for _ in range(2)]
    async with serving(t) as api:
        first, second = (Api(api.port, api.session, {"cookie": cookie}) for cookie in cookies)
        async with watching(first) as leaving, watching(second) as staying:
            for response in (leaving, staying):
                await event(response, "stats")
            session = await sessions.find(cookies[0])
            assert session is not None
            await sessions.end(session)
            clock.advance(5)
            assert await ended(leaving)
            await event(staying, "stats")


@pytest.mark.usefixtures("hasty")
async def test_who_watches_without_a_token_does_so_until_there_is_one(t: Tickler, api: Api, clock: ManualClock) -> None:
    async with watching(api) as response:
        await event(response, "stats")
        clock.advance(1)
        await event(response, "stats")
        await t.tokens.create(["read"])
        clock.advance(1)
        assert await ended(response)


async def test_the_numbers_are_worked_out_once_for_all_who_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[str | None] = []

    async def counted(tickler: Tickler, owner: str | None) -> Any:
        asked_for.append(owner)
        return await stats(tickler, owner)

    monkeypatch.setattr(system, "stats", counted)
    monkeypatch.setattr(system, "PULSE_S", 0.2)
    async with connect("memory://") as t, serving(t) as api, AsyncExitStack() as open_ones:
        began = asyncio.get_running_loop().time()
        watchers = [await open_ones.enter_async_context(watching(api)) for _ in range(8)]
        for _ in range(3):
            for watcher in watchers:
                await event(watcher, "stats")
        took_s = asyncio.get_running_loop().time() - began
    assert len(asked_for) <= 2 + took_s / (system.STATS_SHARE * 0.2) < 24


async def test_numbers_that_could_not_be_had_are_tried_for_again_by_the_next_one() -> None:
    shared: SingleFlight[int] = SingleFlight()

    async def fail() -> int:
        raise StoreUnavailable("the disk is gone")

    async def one() -> int:
        return 1

    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await shared.get(None, fail, 60)
    assert await shared.get(None, one, 60) == 1
    assert await shared.get(None, fail, 60) == 1
    assert await shared.get("u1", one, 0) == 1


async def test_numbers_are_worked_out_to_the_end_though_who_asked_first_goes_away() -> None:
    shared: SingleFlight[int] = SingleFlight()
    go_on = asyncio.Event()

    async def slowly() -> int:
        await go_on.wait()
        return 1

    first, second = (asyncio.create_task(shared.get(None, slowly, 60)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    go_on.set()
    assert await second == 1
