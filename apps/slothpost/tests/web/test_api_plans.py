"""Plans and pauses by the API."""

from __future__ import annotations

from typing import Any

import pytest
from api_client import ApiClient, client_of

from installation import Installation
from slothpost.identifiers import draft_key
from slothpost.model import Product
from slothpost.web.api.channels import DAYS

PLAN = {"tue": "09:00", "thu": ["09:00", "17:30"], "mon": None}
EVERY_HALF_HOUR = tuple(f"{hour:02}:{minute:02}" for hour in range(24) for minute in (0, 30))


@pytest.fixture
async def product(here: Installation) -> Product:
    return await here.a_product()


@pytest.fixture
async def api(here: Installation, product: Product) -> ApiClient:
    return await client_of(here.app, await here.a_user())


def x_of(product: Product) -> str:
    return f"/api/products/{product.id}/channels/x"


async def test_a_day_that_is_enabled_without_a_time_is_refused_with_the_field_and_the_reason(
    here: Installation, api: ApiClient, product: Product
) -> None:
    answer = await api.put(f"{x_of(product)}/plan", {"days": {"mon": {"enabled": True}}})
    assert answer.refusal == (422, "invalid_field", "days.mon.enabled")
    assert answer.json["detail"] == (
        "mon.enabled is an unknown field: a day is on when it has a 'time', and off when that is null"
    )
    assert await here.app.t.schedules.get("ada", draft_key(product.id, "x")) is None


async def test_a_plan_is_what_was_put_with_its_next_draft_and_slot(api: ApiClient, product: Product) -> None:
    answer = await api.put(f"{x_of(product)}/plan", {"days": PLAN, "tz": "Europe/Paris"})
    assert answer.status == 200
    assert answer.json["next_slot"] == "2027-03-02T08:00:00Z"
    assert answer.json["next_draft"] == "2027-03-01T20:00:00Z"
    assert (answer.json["is_scheduled"], answer.json["hold"]) == (True, "no account is connected to this channel")
    plan = await api.found(f"{x_of(product)}/plan")
    assert plan["tz"] == "Europe/Paris"
    assert plan["days"] == dict.fromkeys(("mon", "wed", "fri", "sat", "sun")) | {"tue": ["09:00"], "thu": ["09:00", "17:30"]}
    assert (await api.put(f"{x_of(product)}/plan", plan)).json["plan"] == plan, "it can be put again"
    assert (await api.found(f"/api/products/{product.id}/channels"))["items"][0]["plan"] == plan


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        ({"days": {"tue": "25:00"}}, "days.tue"),
        ({"days": {"tue": ["09:00", 9]}}, "days.tue"),
        ({"days": {"blursday": "09:00"}}, "days.blursday"),
        ({"days": {"mon": True}}, "days.mon"),
        ({"days": {"mon": {}}}, "days.mon"),
        ({"days": []}, "days"),
        ({"days": "tue 09:00"}, "days"),
        ({}, "days"),
        ({"days": {"tue": "09:00"}, "tz": "Mars/Olympus"}, "tz"),
        ({"days": {"tue": "09:00"}, "tz": 1}, "tz"),
        ({"days": {"tue": "09:00"}, "timezone": "UTC"}, "timezone"),
        ({"days": dict.fromkeys(DAYS, EVERY_HALF_HOUR)}, "days"),
    ],
)  # fmt: skip
async def test_a_plan_that_cannot_be_used_is_refused_with_its_field_and_changes_nothing(
    api: ApiClient, product: Product, plan: dict[str, Any], field: str
) -> None:
    await api.put(f"{x_of(product)}/plan", {"days": PLAN, "tz": "Europe/Paris"})
    before = await api.found(x_of(product))
    assert (await api.put(f"{x_of(product)}/plan", plan)).refusal == (422, "invalid_field", field)
    assert await api.found(x_of(product)) == before


async def test_a_plan_without_a_time_is_not_scheduled_and_says_so(here: Installation, api: ApiClient, product: Product) -> None:
    await api.put(f"{x_of(product)}/plan", {"days": PLAN})
    answer = await api.put(f"{x_of(product)}/plan", {"days": {"mon": None}})
    assert (answer.json["is_scheduled"], answer.json["next_draft"], answer.json["next_slot"]) == (False, None, None)
    assert await here.app.t.schedules.get("ada", draft_key(product.id, "x")) is None
    assert (await api.found(f"{x_of(product)}/why"))["sentence"] == "not scheduled: no day of the plan has a time"


async def test_why_is_what_the_engine_says(api: ApiClient, product: Product) -> None:
    await api.put(f"{x_of(product)}/plan", {"days": PLAN, "tz": "Europe/Paris"})
    why = await api.found(f"{x_of(product)}/why")
    assert why["sentence"].startswith("the drafting of this channel is not due yet: it fires next at")
    assert "`slothpost serve`" in why["facts"][-1]["says"]
    assert why["facts"][0]["about"]


@pytest.mark.parametrize("what", ["channel", "product", "account"])
async def test_what_is_paused_is_in_no_index_until_it_is_resumed(
    here: Installation, api: ApiClient, product: Product, what: str
) -> None:
    place = {"channel": x_of(product), "product": f"/api/products/{product.id}", "account": "/api/account"}[what]
    await api.put(f"{x_of(product)}/plan", {"days": PLAN, "tz": "Europe/Paris"})
    assert (await api.done(f"{place}/pause"))["paused"] is True
    channel = await api.found(x_of(product))
    assert (channel["next_draft"], channel["next_slot"]) == (None, None)
    assert "is paused" in channel["hold"]
    assert await here.app.t.index.next_due() is None
    assert (await api.done(f"{place}/resume"))["paused"] is False
    assert (await api.found(x_of(product)))["next_slot"] == "2027-03-02T08:00:00Z"
    assert await here.app.t.index.next_due() is not None


async def test_a_channel_that_no_network_has_is_not_found(api: ApiClient, product: Product) -> None:
    for path in ("mastodon", "X", "x%2Fplan", ""):
        answer = await api.get(f"/api/products/{product.id}/channels/{path}/plan")
        assert answer.refusal[0] == 404, path
