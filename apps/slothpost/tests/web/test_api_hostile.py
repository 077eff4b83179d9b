"""The API with requests that nobody sends by mistake: each answer is one that the OpenAPI document has, and never a failure."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
from api_client import ApiClient, tokens_of

from installation import Installation
from slothpost.web.api.operation import NoBody, Operation
from slothpost.web.api.operations import OPERATIONS
from slothpost.web.app import create_app

VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 1e308, "", " ", "\x00", "\u202e", "é", "x" * 20_000, "../..", "😀" * 300, "2027-03-02T09:00:00Z",
    "9999-12-31T23:59:59Z", [], [None], ["\x00"], {}, {"a": {"b": []}}, {"mon": "09:00"}, {"mon": ["\x00"]},
    {"mon": {"time": "09:00"}},
)  # fmt: skip
IDS = ("", ".", "%00", "%2E%2E", "x" * 5_000, "%F0%9F%98%80", "a%2Fb", "%E2%80%AE")
QUERIES = (
    "limit=99999999999999999999",
    "after=%00",
    "after=" + "A" * 3_000,
    "product=%00",
    "=",
    "&&",
    "%FF=1",
    "state=%F0%9F%98%80",
)


async def answered(here: Installation, token: str, method: str, path: str, body: object = None) -> None:
    """Send a request; the client checks that the answer is described."""
    api = ApiClient(create_app(here.app), token)  # with limits of its own, which these many requests would reach
    answer = await api(method, path, body)
    assert answer.status < 500, f"{method} {path[:80]} {json.dumps(body)[:80]}: {answer}"


def bodies_of(operation: Operation) -> list[object]:
    """Return bodies with each value in each field, and in a field that is not there."""
    names = [field.name for field in msgspec.structs.fields(operation.body)]
    right = {"text": "mine", "url": "https://x.example/1", "until": "2027-03-02T10:00:00Z", "slot_at": "2027-03-02T10:00:00Z"}
    required = {field.name: right.get(field.name, "mine") for field in msgspec.structs.fields(operation.body) if field.required}
    return [{**required, name: value} for name in [*names, "é"] for value in VALUES]


async def test_no_value_of_any_field_makes_an_operation_fail(here: Installation) -> None:
    product = await here.a_channel({"tue": "09:00"})
    token = await tokens_of(here.app).issue(await here.a_user(), "hostile", writes=True)
    for operation in OPERATIONS:
        if operation.body is NoBody:
            continue
        post = await here.a_draft(product) if "post" in operation.names else None
        path = f"/api{operation.path}".format(product=product.id, channel="x", post=post.id if post else "")
        for body in bodies_of(operation):
            await answered(here, token, operation.method, path, body)


async def test_no_id_and_no_parameter_makes_an_operation_fail(here: Installation) -> None:
    product = await here.a_product()
    token = await tokens_of(here.app).issue(await here.a_user(), "hostile", writes=True)
    right = {"product": product.id, "channel": "x", "post": "p"}
    for operation in OPERATIONS:
        for name, id in itertools.product(operation.names, IDS):
            await answered(here, token, operation.method, f"/api{operation.path}".format(**{**right, name: id}))
        if operation.method == "GET":
            for query in QUERIES:
                await answered(here, token, "GET", f"/api{operation.path}?{query}".format(**right))
