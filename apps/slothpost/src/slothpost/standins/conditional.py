"""Answers with an ETag, and 304 to those who have it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from aiohttp import web


def conditional_answer(request: web.Request, content: object, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return the content as JSON, or 304 without a body if the request names the ETag that it has."""
    body = json.dumps(content).encode()
    etag = f'W/"{hashlib.sha256(body).hexdigest()}"'
    given = {**(headers or {}), "ETag": etag}
    if request.headers.get("if-none-match") == etag:
        return web.Response(status=304, headers=given)
    return web.Response(body=body, content_type="application/json", headers=given)
