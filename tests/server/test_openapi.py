"""The OpenAPI document suits client generators, and publishes what the code does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from server.served import Api
from tickler import HttpTarget, Policy, StoredSchedule, Tickler
from tickler.clock import EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS, to_datetime
from tickler.server.openapi.document import document

SCHEMAS: dict[str, Any] = document()["components"]["schemas"]
OPERATIONS = [(f"{method} {path}", each) for path, methods in document()["paths"].items() for method, each in methods.items()]


def within(value: Any) -> Iterator[Any]:
    yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from within(each)


def test_no_field_of_a_body_has_a_default() -> None:
    """openapi-typescript would make it required, and openapi-python-client would always send it."""
    assert [
        name for name, schema in SCHEMAS.items() for each in within(schema) if isinstance(each, dict) and "default" in each
    ] == []
    assert SCHEMAS["ScheduleBody"]["required"] == ["when"]
    assert [SCHEMAS[name].get("required", []) for name in ("SchedulePatch", "PolicyBody")] == [[], []]


@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
def test_a_header_is_plain_text(name: str, operation: dict[str, Any]) -> None:
    """openapi-python-client drops an operation that has a choice or a constant in a header."""
    for header in (each for each in operation["parameters"] if each["in"] == "header"):
        assert header["schema"]["type"] == "string"
        assert not {"anyOf", "oneOf", "const", "enum"} & header["schema"].keys(), header["name"]


def test_no_schema_leads_back_to_itself() -> None:
    """openapi-python-client drops operations with such a schema."""

    def check(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, above
        for each in within(SCHEMAS[name]):
            if isinstance(each, dict) and "$ref" in each:
                check(each["$ref"].rpartition("/")[2], (*above, name))

    for name in SCHEMAS:
        check(name, ())
    assert "anyOf" not in SCHEMAS["ScheduleBody"]["properties"]["payload"]


def test_it_names_a_server_and_every_operation_a_tag() -> None:
    assert document()["servers"][0]["url"] == "/"
    tags = {each["name"] for each in document()["tags"]}
    assert {tag for _, operation in OPERATIONS for tag in operation["tags"]} == tags
    assert all(len(operation["tags"]) == 1 for _, operation in OPERATIONS)


def published_defaults(name: str) -> dict[str, Any]:
    """Return the defaults that the descriptions of a schema's fields name."""
    found: dict[str, Any] = {}
    for field, schema in SCHEMAS[name]["properties"].items():
        for each in within(schema):
            if isinstance(each, dict) and isinstance(text := each.get("description"), str) and "Default: " in text:
                found[field], _ = json.JSONDecoder().raw_decode(text.partition("Default: ")[2])
    return found


def as_json(value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return [as_json(each) for each in value] if isinstance(value, tuple) else value


async def put_without_options(t: Tickler, api: Api, when: str) -> StoredSchedule:
    target = {"type": "http", "url": "https://example.org/hook"}
    assert (await api.put("/v1/schedules/u1/k", {"when": when, "target": target})).status in (200, 201)
    stored = await t.schedules.get("u1", "k")
    assert stored is not None
    return stored


@pytest.mark.parametrize("suffix", ["Body", "Patch"])
async def test_every_published_default_is_what_a_put_without_the_field_stores(t: Tickler, api: Api, suffix: str) -> None:
    stored = await put_without_options(t, api, "@daily")
    policy = published_defaults(f"Policy{suffix}")
    assert policy == {name: as_json(getattr(stored.policy, name)) for name in Policy.__struct_fields__}
    assert policy["backoff"][-1] == 86_400
    schedule = published_defaults(f"Schedule{suffix}")
    assert schedule == {name: getattr(stored, name) for name in ("tz", "delete_after", "enabled")}
    assert isinstance(stored.target, HttpTarget)
    assert published_defaults("HttpTargetBody" if suffix == "Body" else "TargetPatch") == {"body": stored.target.body}


async def test_the_published_exception_for_at_is_what_a_put_stores(t: Tickler, api: Api) -> None:
    stored = await put_without_options(t, api, "at(2090-01-01T00:00:00)")
    assert stored.delete_after
    assert SCHEMAS["ScheduleBody"]["properties"]["delete_after"]["description"].endswith("Default: false; true for at(…).")


def test_the_published_pattern_of_an_instant_takes_the_years_that_are_plausible() -> None:
    whole_years = range(to_datetime(EARLIEST_PLAUSIBLE_MS).year + 1, to_datetime(LATEST_PLAUSIBLE_MS).year)
    [pattern] = [each["pattern"] for each in SCHEMAS["ScheduleBody"]["properties"]["starts_at"]["anyOf"] if "pattern" in each]
    assert [year for year in range(1_000, 10_000) if re.match(pattern, f"{year}-01-01T00:00:00Z")] == [*whole_years]


def parameter_defaults() -> dict[str, set[Any]]:
    found: dict[str, set[Any]] = {}
    for _, operation in OPERATIONS:
        for each in operation["parameters"]:
            if "default" in each["schema"]:
                found.setdefault(each["name"], set()).add(each["schema"]["default"])
    return found


@pytest.mark.parametrize(("parameter", "path"), [("limit", "/v1/schedules"), ("n", "/v1/preview?when=@daily")])
async def test_the_default_of_a_parameter_is_what_the_service_does_without_it(api: Api, parameter: str, path: str) -> None:
    schedules = [{"owner": "u1", "key": f"k{number}", "when": "@daily"} for number in range(101)]
    await api.post("/v1/schedules:import", b"\n".join(json.dumps(each).encode() for each in schedules))
    [default] = [
        each["schema"]["default"]
        for each in document()["paths"][path.partition("?")[0]]["get"]["parameters"]
        if each["name"] == parameter
    ]
    answer = (await api.get(path)).json
    assert len(answer["items" if parameter == "limit" else "next"]) == default


@pytest.mark.parametrize("path", ["/v1/schedules", "/v1/schedules/u1/k0/fires", "/v1/fires?state=open", "/v1/audit"])
async def test_the_default_limit_is_what_a_list_uses_without_one(
    t: Tickler, api: Api, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    for place, name in ((t.schedules, "list"), (t.fires, "list"), (t.fires, "history"), (t.audit, "list")):
        monkeypatch.setattr(place, name, recording(getattr(place, name), "limit", limits))
    assert (await api.get(path)).status == 200
    assert set(limits) == parameter_defaults()["limit"]


def recording(call: Any, name: str, into: list[int]) -> Any:
    async def recorded(*args: Any, **options: Any) -> Any:
        into.append(options[name] if name in options else args[0])
        return await call(*args, **options)

    return recorded


async def test_every_other_default_of_a_parameter_is_what_the_service_does_without_it(
    t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets: list[int] = []
    monkeypatch.setattr(t, "tick", recording(t.tick, "budget_ms", budgets))
    preview = (await api.get("/v1/preview?when=@daily")).json
    await api.post("/v1/tick")
    used = {"n": {len(preview["next"])}, "tz": {preview["tz"]}, "budget_ms": set(budgets)}
    assert used == {name: values for name, values in parameter_defaults().items() if name != "limit"}
