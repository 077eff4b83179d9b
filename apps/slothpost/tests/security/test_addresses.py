"""Addresses that users give: none leads into the network of the server, however it is written."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from installation import Installation, network_settings, open_installation
from slothpost.drafting.own_endpoint import with_own_endpoint
from slothpost.errors import InvalidField
from slothpost.people.products import ProductChanges
from slothpost.people.users import UserChanges
from slothpost.settings import Settings
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn
from tickler import ManualClock

INSIDE = (
    "http://127.0.0.1:{port}", "http://[::1]:{port}", "http://[::ffff:127.0.0.1]:{port}", "http://0.0.0.0:{port}",
    "http://169.254.169.254", "http://10.0.0.1", "http://[fd00::1]", "http://[64:ff9b::a9fe:a9fe]",
)  # fmt: skip
# A resolver makes an inside address of these; only whoever connects can tell.
RESOLVED = ("http://localhost:{port}", "http://0x7f.1:{port}", "http://2130706433:{port}")


class Inside:
    """A server that nobody outside should reach."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[str] = []


@pytest.fixture
async def inside() -> AsyncIterator[Inside]:
    found = Inside()

    async def answer(request: web.Request) -> web.Response:
        found.asked.append(request.path)
        return web.json_response({"secret": "of the metadata service"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.port = runner.addresses[0][1]
    yield found
    await runner.cleanup()


@pytest.fixture
async def guarded(clock: ManualClock, x: XStandIn, threads: ThreadsStandIn) -> AsyncIterator[Installation]:
    """An installation as it is by default: the networks of the operator's settings are reached, and no address of a user's."""
    settings = Settings(**{**network_settings(x, threads), "allow_networks": (), "store": "memory://"})
    async with open_installation(settings, clock, x, threads) as installation:
        yield installation


async def test_no_notice_is_sent_into_the_network_of_the_server(guarded: Installation, inside: Inside) -> None:
    product = await guarded.a_channel({"tue": "09:00"})
    for address in INSIDE:
        with pytest.raises(InvalidField, match="notify_url"):
            await guarded.app.users.update("ada", UserChanges(notify_url=f"{address.format(port=inside.port)}/x"))
    for number, address in enumerate(RESOLVED):
        try:
            await guarded.app.users.update("ada", UserChanges(notify_url=f"{address.format(port=inside.port)}/x"))
        except InvalidField:
            continue
        await guarded.an_activity(product, f"Number {number} of the things people asked for")
        await guarded.until(guarded.now().replace(hour=23, minute=number))
    assert inside.asked == []


@pytest.mark.parametrize("address", [*INSIDE[:4], *RESOLVED])
async def test_no_model_is_asked_in_the_network_of_the_server(guarded: Installation, inside: Inside, address: str) -> None:
    product = await guarded.a_channel({"tue": "09:00"}, drafter="openai")
    url = address.format(port=inside.port)
    await guarded.app.products.change(
        "ada", product.id, lambda stored: with_own_endpoint(stored, guarded.app.t.encryption, url=url, model="m", key=None)
    )
    await guarded.an_activity(product)
    await guarded.until(guarded.now().replace(hour=23))
    (post,) = await guarded.posts(product)
    assert inside.asked == []
    assert post.drafter == "template"
    assert "of the metadata service" not in post.drafter_note
    assert "is not public" in post.drafter_note or "could not be reached" in post.drafter_note


@pytest.mark.parametrize(
    "url", ["http://user:pw@teapot.example.com", "ftp://teapot.example.com", "https://teapot.example.com/a b"]
)
async def test_the_address_of_a_product_is_one_that_a_post_may_have(guarded: Installation, url: str) -> None:
    with pytest.raises(InvalidField, match="use the address of your product"):
        await guarded.a_product(url=url)
    product = await guarded.a_product(url="")
    assert (await guarded.app.products.update("ada", product.id, ProductChanges(url=""))).domains == []
