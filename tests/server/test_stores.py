"""The whole API on every store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from server.served import NDJSON, Api
from tickler import GiveUp, ManualClock, Tickler, connect
from tickler.model.delivery import Delivery

HOURLY = {"when": "0 * * * *", "target": {"type": "python", "handler": "digest"}, "payload": {"n": 1}}
PATH = "/v1/schedules/u1/a%2Fb"


@pytest.fixture
async def t(any_url: str, clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect(any_url, clock=clock, create=True) as tickler:
        yield tickler


async def test_a_schedule_lives_its_life_over_http(t: Tickler, api: Api, clock: ManualClock) -> None:
    broken = True

    @t.handler("digest")
    async def digest(delivery: Delivery) -> None:
        if broken:
            raise GiveUp("there is no such mailbox")

    # declared
    assert (await api.put(PATH, HOURLY, if_none_match="*")).status == 201
    assert (await api.put(PATH, HOURLY, if_none_match="*")).status == 412
    assert (await api.put(PATH, {**HOURLY, "payload": {"n": 2}}, if_match='"1"')).json["version"] == 2
    assert (await api.put(PATH, HOURLY, if_match='"1"')).status == 412
    assert (await api.get(PATH)).json["payload"] == {"n": 2}
    assert (await api.get(PATH, if_none_match=(await api.get(PATH)).headers["etag"])).status == 304
    assert (await api.post(f"{PATH}/pause")).json["state"] == "paused"
    assert (await api.post(f"{PATH}/resume")).json["next_fire_at"] == clock.now_ms() + 3_600_000

    # imported, listed, exported
    lines = b"".join(b'{"owner": "u2", "key": "k%d", "when": "@daily"}\n' % n for n in range(7)) + b"no\n"
    results = (await api.post("/v1/schedules:import", lines, content_type=NDJSON)).lines
    assert ["error" in each for each in results] == [False] * 7 + [True]
    page = (await api.get("/v1/schedules?limit=5")).json
    rest = (await api.get(f"/v1/schedules?limit=5&after={page['next']}")).json
    assert [each["key"] for each in page["items"] + rest["items"]] == ["a/b", *(f"k{n}" for n in range(7))]
    assert [each["key"] for each in (await api.get("/v1/schedules?owner=u2&key_prefix=k6")).json["items"]] == ["k6"]
    assert len((await api.get("/v1/schedules:export")).lines) == 8

    # fired, given up, sent again
    fire = (await api.post(f"{PATH}/trigger", idempotency_key="once")).json
    assert (await api.post(f"{PATH}/trigger", idempotency_key="once")).json == fire
    assert (await api.post("/v1/tick")).json["dead"] == 1
    assert [each["id"] for each in (await api.get("/v1/fires?state=dead&owner=u1")).json["items"]] == [fire["id"]]
    assert "no such mailbox" in (await api.get(f"/v1/fires/{fire['id']}")).json["reason"]
    assert "no such mailbox" in (await api.get(f"{PATH}/why")).body.decode()
    broken = False
    clock.advance(1)
    assert (await api.post(f"/v1/fires/{fire['id']}/retry")).status == 202
    clock.advance(3600)
    assert (await api.get("/v1/tick")).json["delivered"] == 2
    happened = [entry["happened"] for entry in (await api.get(f"{PATH}/fires")).json["items"]]
    assert sorted(happened) == ["delivered", "delivered", "failed", "retried"]

    # seen
    stats = (await api.get("/v1/stats")).json
    assert (stats["sleeping"], stats["due"], stats["dead"], stats["open"]) == (8, 0, 0, 0)
    assert (await api.get("/v1/forecast")).json["rows"] == 8
    assert (await api.get("/v1/doctor?deep=true")).status == 200
    assert (await api.post("/v1/doctor:repair")).status == 200
    assert (await api.get("/health/ready")).status == 200
    assert b"tickler_due" in (await api.get("/metrics")).body

    # gone
    assert (await api.delete(PATH)).status == 204
    assert (await api.get(f"{PATH}/fires")).json["items"]
    deeds = [deed["action"] for deed in (await api.get("/v1/audit?owner=u1")).json["items"]]
    assert sorted(deeds) == ["deleted", "paused", "put", "put", "resumed", "retried", "triggered"]


async def test_tokens_and_sessions_are_kept_by_every_store(t: Tickler, api: Api, clock: ManualClock) -> None:
    token, text = await t.tokens.create(["read"], owner="u1", name="ada")
    assert (await api.get("/v1/stats")).status == 401
    assert (await api.bearing(text).get("/v1/stats")).status == 200
    assert (await api.bearing(f"{text[:-1]}{'0' if text[-1] != '0' else '1'}").get("/v1/stats")).status == 401
    assert await t.tokens.revoke(token.id)
    assert (await api.bearing(text).get("/v1/stats")).status == 401
