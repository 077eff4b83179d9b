"""How deliveries come to slothpost: by HTTP as from anywhere, or directly while its web server does not run yet."""

from __future__ import annotations

from http import HTTPStatus

import aiohttp
import msgspec

from slothpost.app import Slothpost
from slothpost.demo.shipper import Address, Deliver, SecretOf
from slothpost.model import Connection
from slothpost.settings import Settings
from slothpost.sources.setup import VERCEL_WEBHOOK_PATH, webhook_path
from slothpost.sources.source_secrets import SourceSecrets
from slothpost.sources.webhooks import Received
from slothpost.standins.deliveries import Signed

TIMEOUT_S = 10.0


class _Answer(msgspec.Struct):
    """What the routes of webhooks answer: a result, or a problem."""

    result: str = ""
    detail: str = ""


def secrets_of(slothpost: Slothpost) -> SecretOf:
    """Return what knows the secrets of webhooks, as the sources do to whom users gave them."""
    secrets = SourceSecrets(slothpost.t)

    async def secret_of(address: Address) -> str:
        connection = await slothpost.db.get(Connection.key.id(address.product, address.source))
        return secrets.signing_secret(connection)

    return secret_of


def directly(slothpost: Slothpost) -> Deliver:
    webhooks = slothpost.webhooks

    async def deliver(address: Address, signed: Signed) -> Received:
        if address.source == "github":
            return await webhooks.github(address.product, signed.headers, signed.body)
        if address.source == "appstore":
            return await webhooks.appstore(address.product, signed.headers, signed.body)
        return await webhooks.vercel(signed.headers, signed.body)

    return deliver


def by_http(settings: Settings) -> Deliver:
    async def deliver(address: Address, signed: Signed) -> Received:
        path = VERCEL_WEBHOOK_PATH if address.source == "vercel" else webhook_path(address.source, address.product)
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session,
                session.post(settings.url(path), data=signed.body, headers=signed.headers) as response,
            ):
                return Received(response.status, _words(await response.read()))
        except (aiohttp.ClientError, TimeoutError):
            return Received(HTTPStatus.GATEWAY_TIMEOUT, f"slothpost did not answer at {settings.base_url}")

    return deliver


def _words(body: bytes) -> str:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError:
        return ""
    return answer.result or answer.detail
