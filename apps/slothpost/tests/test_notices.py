"""Notices: on the page, and to the user's webhook."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping

import pytest
from aiohttp import web

from installation import Installation, berlin
from slothpost.errors import InvalidField
from slothpost.people.users import UserChanges
from tickler import InvalidSignature, verify


class Receiver:
    """Keeps what is sent to it."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[tuple[Mapping[str, str], bytes]] = []


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    found = Receiver()

    async def receive(request: web.Request) -> web.Response:
        found.received.append((dict(request.headers), await request.read()))
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/notices", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}/notices"
    yield found
    await runner.cleanup()


async def test_a_notice_is_sent_once_to_the_webhook_of_its_user_signed(here: Installation, receiver: Receiver) -> None:
    product = await here.a_channel({"tue": "09:00"})
    await here.a_user("eve")
    _, secret = await here.app.users.update("ada", UserChanges(notify_url=receiver.url))
    assert secret is not None
    await here.an_activity(product)
    await here.until(berlin("2027-03-02 08:00"))
    ((headers, body),) = receiver.received
    received = verify(body, headers, secret, clock=here.clock, tolerance_s=86_400)
    with pytest.raises(InvalidSignature):
        verify(body + b" ", headers, secret, clock=here.clock, tolerance_s=86_400)
    (post,) = await here.posts(product)
    assert received.payload == {
        "kind": "draft",
        "text": "A draft for Teapot on X waits for you",
        "post": post.id,
        "product": product.id,
    }


async def test_a_post_that_fails_and_an_account_to_connect_again_are_told(here: Installation, receiver: Receiver) -> None:
    product = await here.a_channel({"tue": "09:00"})
    await here.app.users.update("ada", UserChanges(notify_url=receiver.url))
    post = await here.app.review.approve("ada", (await here.a_draft(product)).id, by="Ada")
    here.x.revoke_all()
    await here.until(berlin("2027-03-02 09:30"))
    assert [json.loads(body)["data"]["payload"]["kind"] for _, body in receiver.received] == ["reconnect"]
    assert post.id


async def test_a_webhook_at_a_private_address_is_refused_by_field(here: Installation) -> None:
    await here.a_user()
    for url in ("http://10.0.0.7/hook", "http://169.254.169.254/latest", "ftp://example.com/x", "nonsense"):
        with pytest.raises(InvalidField, match="notify_url"):
            await here.app.users.update("ada", UserChanges(notify_url=url))
    user, secret = await here.app.users.update("ada", UserChanges(notify_url=""))
    assert (user.notify_url or None, secret) == (None, None)


async def test_a_notice_is_current_as_long_as_it_holds(here: Installation) -> None:
    product = await here.a_channel({"tue": "09:00"})
    await here.an_activity(product)
    await here.until(berlin("2027-03-01 21:01"))
    (post,) = await here.posts(product)
    assert [notice.kind for notice in await here.app.notices.current("ada", 5)] == ["draft"]
    await here.app.review.approve("ada", post.id, by="Ada")
    assert await here.app.notices.current("ada", 5) == []
    assert [notice.kind for notice in await here.app.notices.latest("ada")] == ["draft"]
