"""The description of the API has the form that client generators understand, and says what the code does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from server.served import Api
from tickler import Policy
from tickler.model.policy import policy_to_json
from tickler.server.openapi.document import document

SCHEMAS: dict[str, Any] = document()["components"]["schemas"]
OPERATIONS = [(f"{method} {path}", each) for path, methods in document()["paths"].items() for method, each in methods.items()]


def within(value: Any) -> Iterator[Any]:
    yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from within(each)


def test_no_field_of_a_body_has_a_default() -> None:
    """openapi-typescript would take it for required, and openapi-python-client would always send it."""
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
    """openapi-python-client drops whatever has such a schema in it."""

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


def test_the_defaults_of_a_policy_are_those_of_the_code() -> None:
    said = {
        name: json.loads(field["description"].removesuffix(" where it is left out")) for name, field in policy_fields().items()
    }
    assert policy_to_json(Policy(**said)) == {}
    assert said["backoff"][-1] == 86_400


def policy_fields() -> dict[str, Any]:
    fields: dict[str, Any] = SCHEMAS["PolicyBody"]["properties"]
    return fields


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
