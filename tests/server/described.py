"""Checks responses against the OpenAPI document."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import jsonschema_rs

from tickler.server.openapi.document import document


def check_described(method: str, path: str, status: int, content_type: str, body: bytes) -> None:
    """Check status, content type and schema of a response. An operation that is not in the document is skipped."""
    operation = _operation(method.lower(), path.partition("?")[0])
    if operation is None:
        return
    assert str(status) in operation["responses"], f"{method} {path} answered {status}, which is not described: {body[:300]!r}"
    content = operation["responses"][str(status)].get("content")
    if content is None:
        assert body == b"", f"{method} {path}: {body[:300]!r}"
        return
    kind = content_type.partition(";")[0]
    assert kind in content, f"{method} {path} answered {status} as {content_type!r}: {body[:300]!r}"
    if kind.endswith("json") and "ndjson" not in kind:
        _validator(json.dumps(content[kind]["schema"], sort_keys=True)).validate(json.loads(body))


@cache
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for({**json.loads(schema), "components": document()["components"]})


def _operation(method: str, path: str) -> dict[str, Any] | None:
    for template, operations in document()["paths"].items():
        if method in operations and re.fullmatch(_pattern(template), path):
            found: dict[str, Any] = operations[method]
            return found
    return None


@cache
def _pattern(template: str) -> str:
    return re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
