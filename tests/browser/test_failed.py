"""*Dead*: dead and retrying fires, and the buttons that retry or cancel them."""

from __future__ import annotations

from .handlers import WHY
from .service import FAILING, Service, path, until
from .visitor import Visitor

NEVER = "0 0 1 1 *"


async def test_a_dead_fire_is_retried(visitor: Visitor, service: Service, owner: str) -> None:
    await service.kill_fires(owner, "broken")
    await visitor.open("/failed")
    row = visitor.row(owner, "broken")
    await visitor.sees(WHY, row)
    await service.put(owner, "broken", when=NEVER, policy={"attempts": 1})
    await visitor.press("Retry", row)
    await visitor.sees("The fire is queued for a retry.")
    await until("it is delivered", lambda: _last(service, owner, "delivered"))
    await visitor.reload()
    assert await visitor.row(owner, "broken").count() == 0


async def test_all_are_retried_after_the_page_has_said_how_many(visitor: Visitor, service: Service, owner: str) -> None:
    await service.kill_fires(owner, "broken", 2)
    await service.kill_fires(f"{owner}2", "broken")
    found = (await service.call("GET", "/fires?state=dead"))["items"]
    await visitor.open("/failed")
    await visitor.follow("Retry all…")
    schedules, owners = {(fire["owner"], fire["key"]) for fire in found}, {fire["owner"] for fire in found}
    await visitor.sees(f"{len(found)} dead fires of {len(schedules)} schedules and {len(owners)} owners")
    await visitor.follow("Go back")
    assert len(await service.dead(owner)) == 2, "nothing has happened yet"
    for whose in (owner, f"{owner}2"):
        await service.put(whose, "broken", when=NEVER)
    await visitor.follow("Retry all…")
    await visitor.press(f"Retry {len(found)} fires")
    await visitor.sees("All dead fires are queued for a retry.")
    for whose in (owner, f"{owner}2"):
        await until("they are delivered", lambda whose=whose: _last(service, whose, "delivered"))  # type: ignore[misc]
        assert await service.dead(whose) == []


async def test_fires_that_died_for_one_reason_are_one_row_and_are_retried_together(
    visitor: Visitor, service: Service, owner: str
) -> None:
    await service.kill_fires(owner, "broken", 3)
    await visitor.open(f"/failed?owner={owner}")
    row = visitor.row("broken")
    assert await row.locator("button, .button").all_inner_texts() == ["Retry all of this schedule…"]
    await visitor.follow("Retry all of this schedule…", row)
    assert await visitor.page.locator("h1").inner_text() == f"Retry all dead fires of {owner}/broken?"
    await visitor.sees("3 dead fires of 1 schedule and 1 owner")
    await visitor.follow("Go back")
    assert await visitor.row("broken").locator("button").all_inner_texts() == ["Retry", "Cancel"] * 3


async def test_the_page_says_that_there_is_nothing_to_retry(visitor: Visitor, service: Service) -> None:
    for fire in (await service.call("GET", "/fires?state=dead"))["items"]:
        await service.call("POST", f"/fires/{fire['id']}/cancel")
    await visitor.open("/failed")
    await visitor.sees("No dead fires.")
    assert await visitor.buttons() == []
    await visitor.open("/failed/retry-all")
    await visitor.sees("There are no dead fires to retry.")
    assert await visitor.buttons() == ["Go back"]


async def test_a_retrying_fire_is_cancelled_after_a_question(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "trying", when=NEVER, target=FAILING, policy={"attempts": 3, "backoff": [3600]})
    await service.call("POST", f"{path(owner, 'trying')}/trigger")
    await until("it has failed once", lambda: _last(service, owner, "failed", "trying"))
    await visitor.open("/failed")
    row = visitor.row(owner, "trying")
    assert await row.locator("button").all_inner_texts() == ["Cancel"]
    await visitor.press("Cancel", row, agree=False)
    assert visitor.questions == ["Cancel this fire? It will never be delivered."]
    assert await _last(service, owner, "failed", "trying")
    await visitor.press("Cancel", row, agree=True)
    await visitor.sees("Cancelled. The fire will never be delivered.")
    assert await _last(service, owner, "cancelled", "trying")
    assert await visitor.row(owner, "trying").count() == 0


async def test_a_postponed_fire_is_shown_as_such_with_its_reason_and_nothing_is_wrong(
    visitor: Visitor, service: Service, owner: str
) -> None:
    await service.put(owner, "later", when=NEVER, target={"type": "python", "handler": "postponing"})
    await service.call("POST", f"{path(owner, 'later')}/trigger")
    await until("it is postponed", lambda: _last(service, owner, "postponed", "later"))
    await visitor.open(f"/failed?owner={owner}")
    await visitor.sees("No retries pending.")
    await visitor.sees("postponed: the post office is closed", visitor.row(owner, "later"))
    await visitor.open(path(owner, "later"))
    await visitor.sees("is postponed until", visitor.page.locator(".why .sentence"))
    assert await visitor.page.locator(".why.bad").count() == 0
    assert await visitor.page.locator("#fires .state-postponed").inner_text() == "postponed"
    await visitor.sees("until", visitor.page.locator("[data-part=history] td[data-label=State]").first)
    await visitor.sees("postponed", visitor.page.locator("[data-part=timeline] .legend"))
    await visitor.press("Cancel", visitor.page.locator("#fires"), agree=True)


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
    await visitor.follow("Next page")
    assert await visitor.row("broken").count() == 2
    await service.call("DELETE", path(owner, "broken"))


async def _last(service: Service, owner: str, happened: str, key: str = "broken") -> bool:
    return (await service.history(owner, key))[:1] == [happened]
