"""*Now*, *Forecast*, *Doctor* and *Audit log*; and the keyboard on every page."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from tickler import connect
from tickler.records.worker_status import WorkerReport, report

from .conftest import Visit
from .service import CROWD, Service, path, until
from .visitor import DESK, Visitor


async def test_now_shows_the_numbers_the_clocks_and_who_works(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await visitor.open("/")
    await visitor.page.locator("#live[data-state=on]").wait_for()
    stats = await service.call("GET", "/stats")
    for name in ("sleeping", "late", "dead"):
        assert await visitor.page.locator(f"[data-number={name}]").inner_text() == f"{stats[name]:,}"
    for whose in ("server", "browser"):
        await visitor.page.locator(f"[data-offset={whose}]").filter(has_text="same as the store").wait_for()
    await visitor.sees(stats["workers"][0]["name"], visitor.page.locator("#workers"))
    await visitor.sees("working", visitor.page.locator("#workers"))


async def test_counts_and_workers_are_updated_live(visitor: Visitor, service: Service, owner: str) -> None:
    await visitor.open("/")
    sleeping = visitor.page.locator("[data-number=sleeping]")
    before = int((await sleeping.inner_text()).replace(",", ""))
    async with connect(service.store) as t:
        now_ms = t.now_ms()
        await report(t.store.records, WorkerReport(name=owner, doing="stopped", started_at=now_ms, seen_at=now_ms, in_flight=3))
    await service.put(owner, "digest")
    await sleeping.filter(has_text=f"{before + 1:,}").wait_for()
    row = visitor.row(owner)
    await row.locator("[data-status=stopped]").wait_for()
    assert (await row.locator("td").all_inner_texts())[:3] == [owner, "stopped", "3"]
    await visitor.look()


async def test_a_fire_is_seen_by_all_who_look(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await visitor.open("/")
    await visitor.page.locator("#live[data-state=on]").wait_for()
    await service.call("POST", f"{path(owner, 'digest')}/trigger")
    item = visitor.page.locator("#fires li").filter(has_text=f"{owner} / digest")
    await item.wait_for()
    await visitor.sees("delivered", item)
    await visitor.follow(f"{owner} / digest", item)
    assert visitor.path == path(owner, "digest")


async def test_the_forecast_shows_what_the_api_tells(visit: Visit, service: Service) -> None:
    visitor = await visit(service, zone="Asia/Kolkata")  # half an hour off, and never an hour twice
    forecast = await until("it is worked out", lambda: service.call("GET", "/forecast"))
    await visitor.open("/forecast")
    assert await service.call("GET", "/forecast") == forecast, "of many schedules it is kept"
    assert await visitor.page.locator(".heat tbody td .sr").all_inner_texts() == [str(number) for number in forecast["hours"]]
    bars = await visitor.page.locator(".bars title").all_text_contents()
    assert [bar.partition(" due ")[0].replace(",", "") for bar in bars] == [str(number) for number in forecast["minutes"]]
    assert sum(number >= CROWD for number in forecast["hours"]) == 7, "a peak each day"
    busiest = visitor.page.locator(f".heat td[title^='{max(forecast['hours']):,} due ']")
    assert (await busiest.first.get_attribute("class") or "").split() == ["heat-6"]
    half = [each for each in forecast["hours"] if 0 < each * 2 <= max(forecast["hours"])]
    pale = visitor.page.locator(".heat td:is(.heat-1, .heat-2, .heat-3)")
    assert await pale.count() == len(half), "half as dark is half as many"
    assert forecast["peaks"][0]["count"] >= CROWD
    await visitor.sees(f"{forecast['peaks'][0]['count']:,} due", visitor.page.locator(".peaks"))
    await visitor.sees("spread", visitor.page.locator(".peaks"))


async def test_the_doctor_finds_a_fault_and_mends_it(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "lost")
    with closing(sqlite3.connect(service.store.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("DELETE FROM tickler_index WHERE owner = ?", (owner,))
    await visitor.open("/doctor")
    await visitor.sees("Quick checks")
    await visitor.press("Check everything")
    finding = visitor.page.locator(".finding.critical").filter(has_text="1 enabled schedule is not in the index")
    await visitor.sees(f"{owner}/lost", finding)
    await visitor.sees("tickler doctor --repair", finding)
    await visitor.press("Repair", agree=False)
    assert (await service.get(owner, "lost"))["state"] == "unindexed"
    await visitor.press("Repair", agree=True)
    await visitor.sees("Repaired", finding)
    assert (await service.get(owner, "lost"))["state"] == "active"
    await visitor.press("Check everything")
    assert await finding.count() == 0
    await visitor.go("Audit")
    await visitor.sees("repaired")


async def test_the_log_tells_who_did_what(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await visitor.open(path(owner, "digest"))
    await visitor.press("Pause")
    await visitor.press("Resume")
    await visitor.press("Fire now")
    await visitor.press("Delete", agree=True)
    await visitor.go("Audit")
    rows = await visitor.row(owner).all()
    shown = [(await row.locator("td").all_inner_texts())[1:3] for row in rows]
    assert shown == [["local", action] for action in ("deleted", "triggered", "resumed", "paused", "put")]


async def test_a_long_log_comes_in_pages(visitor: Visitor, service: Service, owner: str) -> None:
    await asyncio.gather(*(service.put(owner, f"job-{number}") for number in range(51)))
    await visitor.open("/audit")
    assert await visitor.page.locator("table.list tbody tr").count() == 50
    await visitor.follow("Older entries")
    assert await visitor.row(owner).count() == 1


async def test_every_page_can_be_used_with_a_keyboard_alone(visit: Visit, service: Service, owner: str) -> None:
    visitor = await visit(service, size=DESK)
    await service.kill_fires(owner, "broken")
    await service.put(owner, "digest", when="30 9 * * *")
    await service.call("POST", f"{path(owner, 'digest')}/trigger")
    await until("it is delivered", lambda: service.history(owner, "digest"))
    for place in (
        "/",
        "/forecast",
        f"/schedules?owner={owner}",
        path(owner, "digest"),
        path(owner, "broken"),
        f"{path(owner, 'digest')}/edit",
        "/new-schedule",
        "/failed",
        "/failed/retry-all",
        "/doctor",
        "/audit",
        "/login",
    ):
        await visitor.open(place)
        if place == "/":
            await visitor.page.locator("#fires li").filter(has_text=f"{owner} / digest").wait_for()
        await visitor.tab_through()


async def test_the_audit_notices_accessibility_faults(visitor: Visitor, service: Service) -> None:
    await visitor.open("/new-schedule")
    await visitor.page.evaluate("""() => {
        document.querySelector("label[for=key]").remove();
        document.querySelector("h1").after(document.querySelector("h1").cloneNode(true));
        document.querySelector("#kind").setAttribute("aria-invalid", "true");
        document.querySelector("[name=form_token]").value = "";
        const wide = document.createElement("canvas");
        Object.assign(wide.style, { display: "block", width: "800px" });
        const pale = Object.assign(document.createElement("p"), { textContent: "pale", id: "tz" });
        pale.style.color = "#ddd";
        document.querySelector("main").append(wide, pale);
        document.querySelector("nav a").style.marginLeft = "400px";
    }""")
    with pytest.raises(AssertionError) as caught:
        await visitor.look()
    for fault in (
        'has no name: <input id="key"',
        "2 times h1",
        "is wrong, and does not say why",
        "a form has no token",
        "is a picture without words: <canvas",
        "wide on a screen of 390",
        "lies outside the screen: <a",
        "is hard to read",
        "ids come twice: tz",
    ):
        assert fault in str(caught.value)
    visitor.faults.clear()


async def test_enter_on_the_keyboard_does_what_a_click_does(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await visitor.open("/schedules")
    await visitor.page.keyboard.press("Tab")
    await visitor.sees("Skip to content", visitor.page.locator("body"))
    await visitor.page.keyboard.press("Enter")
    await visitor.page.keyboard.press("Tab")
    await visitor.page.keyboard.press("Tab")
    await visitor.page.keyboard.type(owner)
    async with visitor.page.expect_navigation():
        await visitor.page.keyboard.press("Enter")
    assert await visitor.keys() == ["digest"]
