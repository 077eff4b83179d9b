"""*Failed*: what was given up, what is tried again, and what can be done about either."""

from __future__ import annotations

from .handlers import WHY
from .service import FAILING, Service, path, until
from .visitor import Visitor

NEVER = "0 0 1 1 *"


async def test_one_that_was_given_up_is_sent_again(visitor: Visitor, service: Service, owner: str) -> None:
    await service.kill_fires(owner, "broken")
    await visitor.open("/failed")
    row = visitor.row(owner, "broken")
    await visitor.sees(WHY, row)
    await service.put(owner, "broken", when=NEVER, policy={"attempts": 1})
    await visitor.press("Send again", row)
    await visitor.sees("Sent again: a worker tries it now.")
    await until("it is delivered", lambda: _last(service, owner, "delivered"))
    await visitor.reload()
    assert await visitor.row(owner, "broken").count() == 0


async def test_all_are_sent_again_after_it_was_said_how_many(visitor: Visitor, service: Service, owner: str) -> None:
    await service.kill_fires(owner, "broken", 2)
    await service.kill_fires(f"{owner}2", "broken")
    found = (await service.call("GET", "/fires?state=dead"))["items"]
    await visitor.open("/failed")
    await visitor.follow("Send all again…")
    schedules, owners = {(fire["owner"], fire["key"]) for fire in found}, {fire["owner"] for fire in found}
    await visitor.sees(f"{len(found)} dead fires of {len(schedules)} schedules and {len(owners)} owners")
    await visitor.follow("Not now")
    assert len(await service.dead(owner)) == 2, "nothing has happened yet"
    for whose in (owner, f"{owner}2"):
        await service.put(whose, "broken", when=NEVER)
    await visitor.follow("Send all again…")
    await visitor.press(f"Send {len(found)} again")
    await visitor.sees("All of them are sent again.")
    for whose in (owner, f"{owner}2"):
        await until("they are delivered", lambda whose=whose: _last(service, whose, "delivered"))  # type: ignore[misc]
        assert await service.dead(whose) == []


async def test_those_that_are_alike_are_one_line_and_are_sent_again_together(
    visitor: Visitor, service: Service, owner: str
) -> None:
    await service.kill_fires(owner, "broken", 3)
    await visitor.open(f"/failed?owner={owner}")
    row = visitor.row("broken")
    assert await row.locator("button, .button").all_inner_texts() == ["Send all of this schedule again…"]
    await visitor.follow("Send all of this schedule again…", row)
    assert await visitor.page.locator("h1").inner_text() == f"Send all of {owner}/broken again?"
    await visitor.sees("3 dead fires of 1 schedule and 1 owner")
    await visitor.follow("Not now")
    assert await visitor.row("broken").locator("button").all_inner_texts() == ["Send again", "Cancel"] * 3


async def test_nothing_to_send_again_is_said_so(visitor: Visitor, service: Service) -> None:
    for fire in (await service.call("GET", "/fires?state=dead"))["items"]:
        await service.call("POST", f"/fires/{fire['id']}/cancel")
    await visitor.open("/failed")
    await visitor.sees("Nothing was given up.")
    assert await visitor.buttons() == []
    await visitor.open("/failed/retry-all")
    await visitor.sees("There is nothing to send again.")
    assert await visitor.buttons() == ["Back"]


async def test_what_is_tried_again_is_cancelled_by_whoever_means_it(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "trying", when=NEVER, target=FAILING, policy={"attempts": 3, "backoff": [3600]})
    await service.call("POST", f"{path(owner, 'trying')}/trigger")
    await until("it has failed once", lambda: _last(service, owner, "failed", "trying"))
    await visitor.open("/failed")
    row = visitor.row(owner, "trying")
    assert await row.locator("button").all_inner_texts() == ["Cancel"]
    await visitor.press("Cancel", row, agree=False)
    assert visitor.questions == ["Cancel this fire? It is never delivered."]
    assert await _last(service, owner, "failed", "trying")
    await visitor.press("Cancel", row, agree=True)
    await visitor.sees("Cancelled: it is never delivered.")
    assert await _last(service, owner, "cancelled", "trying")
    assert await visitor.row(owner, "trying").count() == 0


async def test_a_dead_one_is_cancelled_from_the_page_of_its_schedule(visitor: Visitor, service: Service, owner: str) -> None:
    await service.kill_fires(owner, "broken")
    await visitor.open(path(owner, "broken"))
    await visitor.press("Cancel", visitor.page.locator("#fires"), agree=True)
    assert visitor.path == path(owner, "broken"), "where one was before"
    assert await service.dead(owner) == []


async def test_many_come_in_pages(visitor: Visitor, service: Service, owner: str) -> None:
    await service.kill_fires(owner, "broken", 52)
    await visitor.open(f"/failed?owner={owner}&key=broken")
    assert await visitor.row("broken").count() == 50
    await visitor.follow("Following")
    assert await visitor.row("broken").count() == 2
    await service.call("DELETE", path(owner, "broken"))


async def _last(service: Service, owner: str, happened: str, key: str = "broken") -> bool:
    return (await service.history(owner, key))[:1] == [happened]
