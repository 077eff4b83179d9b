"""`/webhooks`: deliveries of GitHub, Vercel and App Store Connect, which sign them. They are read here, and worked on later."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from litestar import Response, post

from slothpost.sources.webhooks import Received
from slothpost.web.api.problems import PROBLEM_HANDLERS
from slothpost.web.context import HttpRequest, context_of, slothpost_of
from tickler.web import Refused

SMALL_BYTES = 1024 * 1024


@post("/webhooks/github/{product:str}", exception_handlers=PROBLEM_HANDLERS)
async def github(request: HttpRequest) -> Response[bytes]:
    """Take a delivery about the repository of a product."""
    async with _body_of(request) as body:
        webhooks = slothpost_of(request).webhooks
        return _answer(await webhooks.github(request.path_params["product"], dict(request.headers), body))


@post("/webhooks/vercel", exception_handlers=PROBLEM_HANDLERS)
async def vercel(request: HttpRequest) -> Response[bytes]:
    """Take a delivery about any project of any user: the integration has one address for all."""
    async with _body_of(request) as body:
        return _answer(await slothpost_of(request).webhooks.vercel(dict(request.headers), body))


@post("/webhooks/vercel/{product:str}", exception_handlers=PROBLEM_HANDLERS)
async def vercel_account(request: HttpRequest) -> Response[bytes]:
    """Take a delivery of a webhook that a user made in an account of their own."""
    async with _body_of(request) as body:
        webhooks = slothpost_of(request).webhooks
        return _answer(await webhooks.vercel(dict(request.headers), body, request.path_params["product"]))


@post("/webhooks/appstore/{product:str}", exception_handlers=PROBLEM_HANDLERS)
async def appstore(request: HttpRequest) -> Response[bytes]:
    """Take a delivery about the app of a product."""
    async with _body_of(request) as body:
        webhooks = slothpost_of(request).webhooks
        return _answer(await webhooks.appstore(request.path_params["product"], dict(request.headers), body))


WEBHOOK_ROUTES: list[Any] = [github, vercel, vercel_account, appstore]


@asynccontextmanager
async def _body_of(request: HttpRequest) -> AsyncIterator[bytes]:
    """Read a body. Who sends it has shown no signature yet, so that only a few large ones are held at once."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) <= SMALL_BYTES:
        yield await request.body()
        return
    with context_of(request).large_bodies.hold():
        yield await request.body()


def _answer(received: Received) -> Response[bytes]:
    """Answer what the sender's list of deliveries will show."""
    if received.status >= 400:
        raise Refused(received.status, received.reason)
    return Response(msgspec.json.encode({"result": received.reason}), status_code=received.status, media_type="application/json")
