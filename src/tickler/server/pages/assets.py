"""Style and scripts: read once, named by what is in them, so that a browser may keep them for ever."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Any

import msgspec
from litestar import Request, Response, get

from tickler.server.problems import Refused

_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


class _Asset(msgspec.Struct, frozen=True):
    body: bytes
    media_type: str
    digest: str


def _read() -> dict[str, _Asset]:
    found: dict[str, _Asset] = {}
    for entry in (files("tickler.server.pages") / "static").iterdir():
        kind = _TYPES.get(entry.name.rpartition(".")[2])
        if kind is not None:
            body = entry.read_bytes()
            found[entry.name] = _Asset(body, kind, hashlib.sha256(body).hexdigest()[:12])
    return found


_assets = _read()


def url_of(name: str) -> str:
    return f"/static/{name}?v={_assets[name].digest}"


@get("/static/{name:str}", opt={"scope": "nothing"})
async def asset(request: Request[Any, Any, Any]) -> Response[bytes]:
    found = _assets.get(request.path_params["name"])
    if found is None:
        raise Refused(404, "there is no such file")
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(found.body, media_type=found.media_type, headers=headers)
