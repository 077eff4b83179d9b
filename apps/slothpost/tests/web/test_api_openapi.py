"""The OpenAPI document is valid, and describes what is served."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
from api_client import ApiClient
from schemathesis.specs.openapi.definitions import OPENAPI_31

from installation import Installation
from slothpost.web.api.openapi import document
from slothpost.web.api.pages import DEFAULT_LIMIT, MAX_LIMIT
from slothpost.web.app import create_app, routes

OPERATIONS = [(path, method, each) for path, methods in document()["paths"].items() for method, each in methods.items()]


def within(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from within(each)


def test_it_is_a_valid_document_of_openapi_3_1() -> None:
    jsonschema_rs.validator_for(OPENAPI_31).validate(document())
    for schema in document()["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)


def test_it_describes_every_route_below_api_and_no_other() -> None:
    served = {
        (re.sub(r":str\}", "}", route.path), method.lower())
        for route in routes().routes
        if route.path.startswith("/api/")
        for method in getattr(route, "methods", ())
        if method != "OPTIONS"
    }
    assert served == {(path, method) for path, method, _ in OPERATIONS} | {("/api/openapi.json", "get")}


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    used = {each["$ref"].rpartition("/")[2] for each in within(document()) if "$ref" in each}
    assert used == set(document()["components"]["schemas"])


def test_ids_are_unique_and_every_operation_has_a_known_tag_and_a_summary() -> None:
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(ids) == len(set(ids))
    tags = {tag["name"] for tag in document()["tags"]}
    assert {tag for _, _, operation in OPERATIONS for tag in operation["tags"]} == tags
    assert all(operation["summary"] for _, _, operation in OPERATIONS)


def test_bounds_and_defaults_of_parameters_are_those_of_the_code() -> None:
    limits = [each["schema"] for _, _, operation in OPERATIONS for each in operation["parameters"] if each["name"] == "limit"]
    assert {(each["minimum"], each["maximum"], each["default"]) for each in limits} == {(1, MAX_LIMIT, DEFAULT_LIMIT)}


def test_no_body_has_a_default_which_generated_clients_would_send() -> None:
    schemas = document()["components"]["schemas"]
    assert [name for name, schema in schemas.items() for each in within(schema) if "default" in each] == []
    assert schemas["NewPlan"]["required"] == ["days"]
    assert "required" not in schemas["ProductPatch"] or schemas["ProductPatch"]["required"] == []


async def test_it_is_served_to_everybody(here: Installation) -> None:
    answer = await ApiClient(create_app(here.app)).get("/api/openapi.json")
    assert (answer.status, answer.json) == (200, document())
