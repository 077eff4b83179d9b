"""`POST /v1/send`: one delivery over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from server.served import Api, serving
from tickler import Tickler, connect
from tickler.model.fire import fire_id

PATH = "/v1/send/u1/welcome"
HOOK = "https://example.org/hook"
BODY = {"target": HOOK, "payload": {"name": "Ada"}}


async def test_a_send_is_accepted_once_and_then_named_again(api: Api, t: Tickler) -> None:
    first = await api.post(PATH, BODY)
    id, now_ms = fire_id("u1", "welcome", t.now_ms()), t.now_ms()
    assert first.json == {"owner": "u1", "key": "welcome", "fire_id": id, "nominal_at": now_ms, "is_new": True}
    again = await api.post(PATH, BODY)
    assert (first.status, again.status) == (202, 200)
    assert again.json == first.json | {"is_new": False}
    stored = (await api.get("/v1/schedules/u1/welcome")).json
    assert (stored["state"], stored["payload"], stored["next_fire_at"]) == ("active", {"name": "Ada"}, now_ms)
    (entry,) = (await t.audit.list()).items
    assert (entry.action, entry.owner, entry.key, entry.detail) == ("sent", "u1", "welcome", id)


async def test_other_content_and_the_name_of_a_schedule_are_conflicts(api: Api) -> None:
    await api.post(PATH, BODY)
    other = await api.post(PATH, {**BODY, "payload": {"name": "Bob"}})
    assert other.status == 409
    assert "was sent with other content" in other.json["detail"]
    await api.put("/v1/schedules/u1/digest", {"when": "@daily", "target": HOOK})
    taken = await api.post("/v1/send/u1/digest", BODY)
    assert (taken.status, "u1/digest is a schedule" in taken.json["detail"]) == (409, True)


async def test_a_send_has_an_instant_and_a_policy(api: Api) -> None:
    sent = await api.post(PATH, {"target": HOOK, "at": "2035-01-01T09:00:00Z", "policy": {"attempts": 3}})
    assert sent.json["nominal_at"] == 2_051_254_800_000
    assert (await api.get("/v1/schedules/u1/welcome")).json["policy"] == {"attempts": 3}
    assert (await api.post(PATH, {"target": HOOK, "at": 2_051_254_800_000, "policy": {"attempts": 3}})).status == 200


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ([], 400, None),
        ({}, 422, "target"),
        ({"target": "ftp://x"}, 422, "target.url"),
        ({**BODY, "when": "@daily"}, 422, "when"),
        ({**BODY, "at": "tomorrow"}, 422, "at"),
        ({**BODY, "at": 5}, 422, "at"),
        ({**BODY, "at": [1]}, 422, "at"),
        ({**BODY, "policy": {"tries": 3}}, 422, "policy.tries"),
        ({**BODY, "policy": 3}, 422, "policy"),
    ],
)
async def test_what_cannot_be_sent_is_refused_by_field(api: Api, t: Tickler, body: Any, status: int, field: str | None) -> None:
    refused = await api.post(PATH, body)
    assert (refused.status, refused.json.get("field")) == (status, field)
    assert (await t.schedules.list()).items == []


async def test_a_token_of_one_owner_sends_for_that_owner_over_http_only() -> None:
    async with connect("memory://") as t, serving(t) as api:
        _, secret = await t.tokens.create(["read", "write"], owner="u1")
        bound = api.bearing(secret)
        assert (await bound.post("/v1/send/u2/welcome", BODY)).status == 404
        refused = await bound.post(PATH, {"target": {"type": "python", "handler": "h"}})
        assert (refused.status, refused.json["field"]) == (422, "target")
        assert (await bound.post(PATH, BODY)).status == 202
