"""A client of the API, which checks that every answer is as the OpenAPI document says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import jsonschema_rs
from web.asking import ask

from slothpost.app import Slothpost
from slothpost.model import User
from slothpost.web.api.openapi import document
from slothpost.web.api_tokens import API_TOKEN_PREFIX, ApiToken, ApiTokens
from slothpost.web.app import create_app
from tickler.web import Web

PROBLEM = "application/problem+json"


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def refusal(self) -> tuple[int, str, str]:
        """The status, the code and the field of a problem."""
        assert self.headers["content-type"] == PROBLEM, self
        problem = self.json
        assert problem["status"] == self.status
        return self.status, problem.get("code", ""), problem.get("field", "")


class ApiClient:
    """Asks the application of an installation, with a token."""

    def __init__(self, app: Any, token: str = "") -> None:
        self.app = app
        self.token = token

    async def __call__(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent.setdefault("authorization", f"Bearer {self.token}")
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if content:
            sent.setdefault("content-type", "application/json")
        got = await ask(self.app, method, path, sent, [content])
        answer = Answer(got.status, got.headers, got.body)
        check_described(method, path, answer)
        return answer

    async def get(self, path: str) -> Answer:
        return await self("GET", path)

    async def found(self, path: str) -> Any:
        answer = await self("GET", path)
        assert answer.status == 200, answer
        return answer.json

    async def put(self, path: str, body: object) -> Answer:
        return await self("PUT", path, body)

    async def patch(self, path: str, body: object) -> Answer:
        return await self("PATCH", path, body)

    async def post(self, path: str, body: object = None) -> Answer:
        return await self("POST", path, body)

    async def done(self, path: str, body: object = None) -> Any:
        answer = await self("POST", path, body)
        assert answer.status in (200, 201), answer
        return answer.json


def tokens_of(slothpost: Slothpost) -> ApiTokens:
    """Return the tokens as another process of the installation has them."""
    web: Web[User] = Web(slothpost.t, "slothpost", user=slothpost.users.get)
    return ApiTokens(slothpost.db, web.tokens(ApiToken, prefix=API_TOKEN_PREFIX, subject=lambda token: token.user))


async def client_of(slothpost: Slothpost, user: User, *, writes: bool = True) -> ApiClient:
    return ApiClient(create_app(slothpost), await tokens_of(slothpost).issue(user, "a script", writes=writes))


def check_described(method: str, path: str, answer: Answer) -> None:
    """Check status, content type and body of an answer. What is not of the API is skipped."""
    operation = _operation(method.lower(), path.partition("?")[0])
    if operation is None:
        return
    assert str(answer.status) in operation["responses"], f"{method} {path} is not described: {answer}"
    content = operation["responses"][str(answer.status)]["content"]
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in content, f"{method} {path}: {answer}"
    _validator(json.dumps(content[kind]["schema"], sort_keys=True)).validate(answer.json)


@cache
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for({**json.loads(schema), "components": document()["components"]})


def _operation(method: str, path: str) -> dict[str, Any] | None:
    for template, operations in document()["paths"].items():
        if method in operations and re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path):
            found: dict[str, Any] = operations[method]
            return found
    return None
