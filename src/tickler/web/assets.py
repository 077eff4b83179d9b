"""Style sheets, scripts and images of a package, read once. Their address holds a digest, so browsers cache them for ever."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import msgspec

from tickler.errors import InvalidInput
from tickler.web.asgi import Receive, Send
from tickler.web.problems import Answer, Refused, problem_answer, problem_of, send_answer

MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "webp": "image/webp",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
}
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
SHARED = "tickler/"  # the folder of the shared files

# `import … from "./x.js"`, `export … from "./x.js"`, `import "./x.js"` and `import("./x.js")`, of files beside the script.
_IMPORT = re.compile(rb"""(\b(?:from|import)\s*\(?\s*)(["'])(\.{1,2}/[^"'\n]+)\2""")


class Asset(msgspec.Struct, frozen=True):
    """A file with its media type, and the address that pages use."""

    body: bytes
    media_type: str
    url: str

    @property
    def headers(self) -> dict[str, str]:
        return {"content-type": self.media_type, "cache-control": FOR_EVER}

    def headers_for(self, query: bytes) -> dict[str, str]:
        """Return the headers for a request with this query: only the content that its digest names is kept for ever.

        While versions change, a process with the old files is asked for new ones, too.
        """
        is_this = query.decode("latin-1") == self.url.partition("?")[2]
        return self.headers if is_this else {**self.headers, "cache-control": ASK_AGAIN}


class Assets:
    """The files of a folder of a package, also in its subfolders. Imports between its scripts get the digests, too.

    `shared`: below `tickler/` are also the style sheet and the scripts that the service's own pages are made with. It is an ASGI
    app for all paths below `at`.
    """

    def __init__(self, package: str, folder: str = "static", *, at: str = "/static/", shared: bool = False) -> None:
        if not (at.startswith("/") and at.endswith("/")):
            raise InvalidInput(f"at: {at!r} must start and end with a slash, as '/static/' does")
        self._at = at
        self._bodies = dict(_files_below(files(package) / folder))
        if shared:
            self._bodies |= _files_below(files("tickler.web") / "static", SHARED)
        self._assets: dict[str, Asset] = {}
        for name in sorted(self._bodies):
            self._add(name, ())

    def find(self, name: str) -> Asset | None:
        """Return a file by its name within the folder."""
        return self._assets.get(name)

    def url(self, name: str) -> str:
        """Return the address of a file, for pages."""
        if name not in self._assets:
            raise InvalidInput(f"asset: there is no {name!r}: use one of {', '.join(self._assets) or 'none'}")
        return self._assets[name].url

    def serves(self, scope: Mapping[str, Any]) -> bool:
        """Return whether a request is for the paths of these files."""
        return scope["type"] == "http" and str(scope["path"]).startswith(self._at)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        found = self.find(scope["path"].removeprefix(self._at)) if self.serves(scope) else None
        if found is None:
            await send_answer(send, problem_answer(problem_of(Refused(404, "no such file")), {}))
        elif scope["method"] not in ("GET", "HEAD"):
            refused = Refused(405, "files are only read: send GET", headers={"allow": "GET, HEAD"})
            await send_answer(send, problem_answer(problem_of(refused), refused.headers))
        else:
            answer = Answer(200, found.headers_for(scope["query_string"]), found.body)
            await send_answer(send, answer, is_head=scope["method"] == "HEAD")

    def _add(self, name: str, importers: tuple[str, ...]) -> str:
        """Add a file after those it imports, and return its address."""
        if name in self._assets:
            return self._assets[name].url
        if name in importers:
            circle = " imports ".join([*importers[importers.index(name) :], name])
            raise InvalidInput(f"assets: {circle}: break the circle, as each digest needs the other")
        kind, body = name.rpartition(".")[2], self._bodies[name]

        def with_digest(found: re.Match[bytes]) -> bytes:
            imported = posixpath.normpath(posixpath.join(posixpath.dirname(name), found[3].decode()))
            if imported not in self._bodies:
                return found[0]
            return b"".join([found[1], found[2], self._add(imported, (*importers, name)).encode(), found[2]])

        if kind == "js":
            body = _IMPORT.sub(with_digest, body)
        url = f"{self._at}{name}?v={hashlib.sha256(body).hexdigest()[:12]}"
        self._assets[name] = Asset(body, MEDIA_TYPES[kind], url)
        return url


def _files_below(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files_below(entry, f"{prefix}{entry.name}/")
        elif entry.name.rpartition(".")[2] in MEDIA_TYPES:
            yield f"{prefix}{entry.name}", entry.read_bytes()
