"""Ticks, numbers, the doctor, who did what, health, metrics, and what happens right now."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from server.served import Api, serving
from tickler import ManualClock, PythonTarget, Schedule, StoreUnavailable, Tickler, connect
from tickler.delivery import Delivery
from tickler.server.api import system
from tickler.server.app import make_app
from tickler.server.live import Live
from tickler.server.settings import ServerSettings
from tickler.server.stats import stats
from tickler.tokens import NONE_REMEMBERED_MS

PATH = "/v1/schedules/u1/digest"
ECHO = {"when": "0 * * * *", "target": {"type": "python", "handler": "echo"}}


@asynccontextmanager
async def watching(api: Api) -> AsyncIterator[aiohttp.ClientResponse]:
    async with api.session.get(api.url("/v1/live"), headers=api.headers) as response:
        assert response.status == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield response


async def event(response: aiohttp.ClientResponse, kind: str) -> Any:
    """The next one of a kind."""
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
    assert [each["check"] for each in (await api.get("/v1/doctor")).json["findings"]] == ["no-worker"]
    assert (await api.get("/v1/doctor?deep=true")).status == 200
    assert (await api.get("/v1/doctor?deep=yes")).field == "deep"
    assert (await api.post("/v1/doctor:repair")).status == 200
    assert (await api.post("/v1/doctor:repair", {"deep": True})).status == 400
    assert [deed["did"] for deed in (await api.get("/v1/audit")).json["items"]] == ["repaired"]


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
        await t.audit.note("ada", f"did {number}", owner=f"u{number % 2}")
    found: list[str] = []
    after = ""
    while True:
        page = (await api.get(f"/v1/audit?limit=3{after}")).json
        found += [deed["did"] for deed in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert found == [f"did {number}" for number in range(6, -1, -1)]
    assert [deed["did"] for deed in (await api.get("/v1/audit?owner=u1")).json["items"]] == ["did 5", "did 3", "did 1"]


async def test_what_a_newer_version_wrote_down_hides_nothing_else(t: Tickler, api: Api) -> None:
    await api.put(PATH, ECHO)
    for kind in ("audit", "worker"):
        await t.store.records.put(kind, "000-newer", b'{"at": "noon", "by": ["two"]}', now_ms=t.now_ms())
    assert [deed["did"] for deed in (await api.get("/v1/audit")).json["items"]] == ["put"]
    assert (await api("GET", "/deeds", headers={"accept": "text/html"})).status == 200
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
    assert (await api.get("/health/live")).status == 200
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
    assert results == [{"line": 1, "error": "nothing from here on was put: the disk is gone"}]
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


@pytest.mark.parametrize("method", ["PATCH", "DELETE", "TRACE", "HEAD", "FROBNICATE"])
@pytest.mark.parametrize("path", ["/v1/schedules", "/v1/tick", "/health/live", "/openapi.json", "/v1/fires:retry"])
async def test_a_method_that_a_path_does_not_take_is_405_with_those_it_does(api: Api, method: str, path: str) -> None:
    answer = await api(method, path)
    assert answer.status in (400, 405) if method == "FROBNICATE" else 405
    assert answer.headers["content-type"] == "application/problem+json"
    if answer.status == 405:
        assert answer.headers["allow"]
        assert method == "HEAD" or answer.is_problem


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
        live = Live()
        async with serving(t, app=make_app(t, ServerSettings(), live=live)) as api:
            running = asyncio.create_task(t.run())
            await api.put(PATH, ECHO)
            async with watching(api) as response:
                await api.post(f"{PATH}/trigger")
                assert (await event(response, "fire"))["happened"] == "delivered"
                for _ in range(2):
                    assert (await event(response, "stats"))["open"] == 0
                assert len(live._watchers) == 1
            async with asyncio.timeout(20):
                while live._watchers:
                    await asyncio.sleep(0.01)
            t.stop()
            await running
