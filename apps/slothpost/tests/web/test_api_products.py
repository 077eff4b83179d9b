"""Products and the account by the API."""

from __future__ import annotations

import json
import re

import pytest
from api_client import ApiClient, client_of

from installation import Installation
from slothpost.web.api.openapi import document


@pytest.fixture
async def api(here: Installation) -> ApiClient:
    return await client_of(here.app, await here.a_user())


async def test_a_product_is_created_changed_and_listed(api: ApiClient) -> None:
    created = await api.done("/api/products", {"name": " Teapot ", "url": "https://teapot.example.com/about", "rules": ["short"]})
    assert (created["name"], created["domains"], created["rules"]) == ("Teapot", ["teapot.example.com"], ["short"])
    path = f"/api/products/{created['id']}"
    changed = await api.patch(path, {"url": None, "lead_minutes": 60, "undecided": "next_slot"})
    assert changed.json == {**created, "url": None, "lead_minutes": 60, "undecided": "next_slot"}
    assert await api.found(path) == changed.json
    assert await api.found("/api/products") == {"items": [changed.json]}
    assert [each["name"] for each in (await api.found(f"{path}/channels"))["items"]] == ["x", "threads"]


async def test_the_published_defaults_are_those_of_a_product_without_the_fields(api: ApiClient) -> None:
    created = await api.done("/api/products", {"name": "Teapot"})
    described = document()["components"]["schemas"]["NewProduct"]["properties"]
    published = {
        name: json.loads(found[1])
        for name, schema in described.items()
        if (found := re.search(r"Default: (.*)\.$", schema.get("description", "")))
    }
    assert published == {name: created[name] for name in published}
    assert set(published) > {"lead_minutes", "grace_minutes", "drafter", "undecided"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": 1}, "name"),
        ({"name": "Teapot", "drafter": "magic"}, "drafter"),
        ({"name": "Teapot", "lead_minutes": 100_000}, "lead_minutes"),
        ({"name": "Teapot", "lead_minutes": None}, "lead_minutes"),
        ({"name": "Teapot", "url": "ftp://teapot"}, "url"),
        ({"name": "Teapot", "rules": ["x" * 601]}, "rules"),
        ({"name": "Teapot", "paused": True}, "paused"),
        ({"name": "Teapot", "user": "bob"}, "user"),
    ],
)
async def test_a_field_that_cannot_be_used_is_named_and_nothing_is_created(
    api: ApiClient, fields: dict[str, object], field: str
) -> None:
    assert (await api.post("/api/products", fields)).refusal == (422, "invalid_field", field)
    assert await api.found("/api/products") == {"items": []}


async def test_the_account_is_that_of_the_token(api: ApiClient) -> None:
    assert await api.found("/api/account") == {"id": "ada", "name": "Ada", "zone": "Europe/Berlin", "paused": False}
    changed = await api.patch("/api/account", {"zone": "Asia/Tokyo"})
    assert changed.json == await api.found("/api/account") == {"id": "ada", "name": "Ada", "zone": "Asia/Tokyo", "paused": False}
    assert (await api.patch("/api/account", {"zone": "Mars/Olympus"})).refusal == (422, "invalid_field", "zone")
    assert (await api.patch("/api/account", {"is_operator": True})).refusal == (422, "invalid_field", "is_operator")


async def test_activity_is_listed_page_by_page_the_latest_first(here: Installation, api: ApiClient) -> None:
    product = await here.a_product()
    for number in range(3):
        here.clock.advance(60)
        await here.an_activity(product, f"Feature {number}")
    path = f"/api/products/{product.id}/activity?limit=2"
    first = await api.found(path)
    second = await api.found(f"{path}&after={first['next']}")
    assert [each["title"] for each in first["items"] + second["items"]] == ["Feature 2", "Feature 1", "Feature 0"]
    assert second["next"] is None
    assert (await api.get(f"{path}&after=nonsense")).refusal == (422, "invalid_field", "after")
