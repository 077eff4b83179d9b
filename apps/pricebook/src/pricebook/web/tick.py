"""`/tick`: an outside cron beats, where no process of pricebook stays up: settles, carries on and sends what is due."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from litestar import Response, route
from litestar.enums import HttpMethod

from pricebook.app.handlers import begin_sweeps
from pricebook.app.pricebook import Pricebook
from pricebook.errors import InvalidField
from pricebook.web.context import HttpRequest, book_of, web_of
from tickler import RunOptions
from tickler.deliver import Summary
from tickler.web import Refused

BUDGET_MS, MAX_BUDGET_MS = 30_000, 300_000
DRAIN_S = 30  # for what is being worked on when the budget is spent


@route("/tick", http_method=[HttpMethod.GET, HttpMethod.POST], status_code=200)
async def tick(request: HttpRequest) -> Response[bytes]:
    """Do what is due, and say what was done. Any number of beats may come at once."""
    _check_secret(request)
    summary = await beat(book_of(request), _budget_ms(request))
    return Response(msgspec.json.encode(summary), media_type="application/json")


TICK_ROUTES: list[Any] = [tick]


async def beat(book: Pricebook, budget_ms: int) -> Summary:
    """Follow what was written to the table, and do what is due, within about this time."""
    await begin_sweeps(book)
    await book.settling.consume(budget_ms=max(1, budget_ms // 3))
    return await book.t.tick(budget_ms, RunOptions(drain=DRAIN_S))


def _budget_ms(request: HttpRequest) -> int:
    budget_ms = str(BUDGET_MS)
    for name, value in parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=9):
        if name != "budget_ms":
            raise InvalidField(name[:40], "there is no such parameter: the only one is budget_ms")
        budget_ms = value
    if not budget_ms.isdecimal() or not 1 <= int(budget_ms[:9]) <= MAX_BUDGET_MS:
        raise InvalidField("budget_ms", f"{budget_ms[:20]!r} is invalid: use 1 to {MAX_BUDGET_MS:,} milliseconds")
    return int(budget_ms)


def _check_secret(request: HttpRequest) -> None:
    """Refuse a beat without the secret. Without a secret in the settings there is no such page."""
    secret = book_of(request).settings.tick_secret
    if not secret:
        raise Refused(404, "there is no /tick here: set PRICEBOOK_TICK_SECRET to have one")
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    # Digests have the same length, so that the time of the comparison says nothing about the secret.
    if kind.lower() != "bearer" or not hmac.compare_digest(_digest(given.strip()), _digest(secret)):
        web_of(request).count_failure(request.scope)
        raise Refused(401, "send `Authorization: Bearer` with PRICEBOOK_TICK_SECRET", headers={"www-authenticate": "Bearer"})


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
