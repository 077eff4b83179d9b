"""Style and scripts, read once. Their address holds a digest, so browsers cache them for ever."""

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
    url: str


def _read() -> dict[str, _Asset]:
    """Read scripts after those they import, and put the digests of those into their imports."""
    bodies = {entry.name: entry.read_bytes() for entry in (files("tickler.server.pages") / "static").iterdir()}
    assets: dict[str, _Asset] = {}
    for name in sorted(bodies, key=lambda name: bodies[name].count(b' from "./')):
        kind, body = _TYPES.get(name.rpartition(".")[2]), bodies[name]
        if kind is not None:
            for other, asset in assets.items():
                body = body.replace(f'"./{other}"'.encode(), f'"{asset.url}"'.encode())
            assets[name] = _Asset(body, kind, f"/static/{name}?v={hashlib.sha256(body).hexdigest()[:12]}")
    return assets


_assets = _read()


def url_of(name: str) -> str:
    return _assets[name].url


@get("/static/{name:str}", opt={"scope": "nothing"})
async def asset(request: Request[Any, Any, Any]) -> Response[bytes]:
    found = _assets.get(request.path_params["name"])
    if found is None:
        raise Refused(404, "no such file")
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(found.body, media_type=found.media_type, headers=headers)
