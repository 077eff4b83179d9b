"""Headers that tell browsers what a page may do, on every response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tickler.web.asgi import Send

# Everything comes from this host, and nothing is inline.
STRICT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

Headers = Sequence[tuple[bytes, bytes]]


def security_headers(policy: str = STRICT_POLICY, *, hsts_s: int | None = None) -> Headers:
    """Return the headers. `policy` is the Content-Security-Policy; `hsts_s`: browsers use https only for so long."""
    headers = [
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),
        (b"x-frame-options", b"DENY"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"content-security-policy", policy.encode("latin-1")),
    ]
    return headers if hsts_s is None else [*headers, (b"strict-transport-security", f"max-age={hsts_s}".encode())]


class OutgoingResponse:
    """Wraps an ASGI `send`, and adds the headers that a response does not have already."""

    def __init__(self, send: Send, headers: Headers) -> None:
        self._send = send
        self._headers = headers
        self.started = False

    def add(self, name: bytes, value: bytes) -> None:
        """Add one more header, unless the response has it."""
        self._headers = [*self._headers, (name, value)]

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            own = message.get("headers", ())
            names = {name.lower() for name, _ in own}
            message = {**message, "headers": [*own, *[each for each in self._headers if each[0] not in names]]}
        await self._send(message)
