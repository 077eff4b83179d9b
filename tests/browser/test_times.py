"""All times of a page follow one switch, and look the same whether the server or the browser wrote them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tickler.clock import datetime_ms, to_datetime
from tickler.server.pages.time_format import format_time, zone_name

from .conftest import Visit
from .service import Service, path, until
from .visitor import DESK, Visitor

FORMS = ("full", "date", "day", "minute", "second")
START = datetime(2026, 1, 3, 4, 5, 6, tzinfo=UTC)
INSTANTS = [datetime_ms(START + timedelta(hours=401.5 * n, seconds=n % 3 - 6), "at") for n in range(60)]
FORMATTED = """async ([url, instants, forms]) => {
  const { formatTime, zoneName } = await import(url);
  return instants.map((ms) => [...forms.map((form) => formatTime(ms, form)), zoneName(ms)]);
}"""


async def choose(visitor: Visitor, zone: str) -> None:
    await visitor.page.get_by_label("Time zone of all times").select_option(zone)
    await visitor.look()


@pytest.mark.parametrize("zone", ["America/St_Johns", "Asia/Kathmandu", "Europe/Berlin", "Pacific/Chatham", "UTC"])
async def test_the_browser_writes_times_as_the_server_does(visit: Visit, service: Service, zone: str) -> None:
    visitor = await visit(service, zone=zone)
    await visitor.open("/doctor")
    script = await visitor.page.locator("head script[src*=page]").get_attribute("src")
    assert script is not None
    source = await (await visitor.page.request.get(service.url + script)).text()
    found = re.search(r'"(/static/time\.js\?v=\w+)"', source)
    assert found is not None
    shown = await visitor.page.evaluate(FORMATTED, [found[1], INSTANTS, FORMS])
    now_ms = datetime_ms(datetime.now(UTC), "now")
    info = ZoneInfo(zone)
    expected = [
        [*(format_time(ms, info, form, now_ms=now_ms) for form in FORMS), zone_name(to_datetime(ms).astimezone(info))]
        for ms in INSTANTS
    ]
    assert shown == expected


async def test_all_times_follow_the_switch_which_is_remembered(visit: Visit, service: Service, owner: str) -> None:
    visitor = await visit(service, zone="Asia/Kolkata", size=DESK)
    await service.put(owner, "digest", tz="Asia/Tokyo")
    await service.call("POST", f"{path(owner, 'digest')}/trigger")
    await until("it is delivered", lambda: service.history(owner, "digest"))
    await visitor.open(path(owner, "digest"))
    times = visitor.page.locator("main time[data-ms]:visible")
    for choice, offset in (("yours", "UTC+5:30"), ("utc", "UTC"), ("its", "UTC+9")):
        await choose(visitor, choice)
        assert await times.count() >= 3
        assert set(await times.locator("small").all_inner_texts()) == {offset}
        (mark,) = await visitor.page.locator(".timeline .mark title").all_text_contents()
        assert mark.endswith(f" {offset}")
    assert await visitor.page.locator("table.plain thead th:visible").all_inner_texts() == ["In its zone (Asia/Tokyo)"]
    await visitor.reload()
    assert set(await times.locator("small").all_inner_texts()) == {"UTC+9"}, "it is remembered"

    await visitor.open(f"/schedules?owner={owner}")
    assert set(await times.locator("small").all_inner_texts()) == {"UTC+5:30"}, "a list has no zone of its own"
    heads = visitor.page.locator("thead th").filter(has_text="Next")
    assert await heads.all_inner_texts() == ["Next (its zone)", "Next (your zone)"]
    await choose(visitor, "utc")
    assert await heads.all_inner_texts() == ["Next (its zone)", "Next (UTC)"]
    await visitor.open("/")
    assert re.fullmatch(r"\d\d:\d\d:\d\d UTC", await visitor.page.locator("#store-clock").inner_text())
    await choose(visitor, "yours")
    assert re.fullmatch(r"\d\d:\d\d:\d\d UTC\+5:30", await visitor.page.locator("#store-clock").inner_text())


async def test_instants_inside_the_sentences_of_why_and_doctor_follow_the_switch(
    visit: Visit, service: Service, owner: str
) -> None:
    visitor = await visit(service, zone="Asia/Kolkata", size=DESK)
    key = "<b>broken</b>"
    await service.kill_fires(owner, key)
    said = (await service.call("GET", f"{path(owner, key)}/why"))["sentence"]
    due = re.search(r"of (\S+ \S+) Europe/Berlin \(\d\d:\d\d UTC\) is dead", said)
    assert due is not None, "the API names zone and UTC"
    at = datetime.fromisoformat(due[1]).replace(tzinfo=ZoneInfo("Europe/Berlin"))
    for place, choices in ((path(owner, key), ("yours", "utc", "its")), ("/doctor", ("yours", "utc"))):
        await visitor.open(place)
        sentences = visitor.page.locator(".why, .finding:has(time)")
        for choice in choices:
            await choose(visitor, choice)
            there = at.astimezone(ZoneInfo({"yours": "Asia/Kolkata", "utc": "UTC", "its": "Europe/Berlin"}[choice]))
            text = "".join(await sentences.all_inner_texts())
            offsets = set(await sentences.locator("time small").all_inner_texts())
            assert zone_name(there) in offsets
            assert len(offsets) == 1 or choice == "its", "where summer has another offset"
            assert not re.search(r"\d{4}-\d\d-\d\d", text)
            if place != "/doctor":  # which shows the earliest of all dead fires
                assert f"{key}'s fire of {there:%a} {there.day} {there:%b}, {there:%H:%M}" in text


async def test_the_forecast_begins_its_days_at_midnight_of_the_chosen_zone(visit: Visit, service: Service) -> None:
    visitor = await visit(service, zone="Asia/Kolkata", size=DESK)
    await until("it is worked out", lambda: service.call("GET", "/forecast"))
    await visitor.open("/forecast")
    for choice, zone, offset in (("yours", "Asia/Kolkata", "UTC+5:30"), ("utc", "UTC", "UTC")):
        await choose(visitor, choice)
        for row in await visitor.page.locator(".heat tbody tr").all():
            day = await row.locator("th").inner_text()
            for column, cell in enumerate(await row.locator("td").all()):
                if hour := await cell.get_attribute("data-hour"):
                    at = to_datetime(int(hour)).astimezone(ZoneInfo(zone))
                    assert (day, column) == (f"{at:%a} {at.day} {at:%b}", at.hour)
                    assert (await cell.get_attribute("title") or "").endswith(f", {at:%H:%M} {offset}")


async def test_without_scripts_times_are_in_utc_and_the_page_says_so(visit: Visit, service: Service, owner: str) -> None:
    visitor = await visit(service, zone="Asia/Kolkata", scripts=False)
    stored = await service.put(owner, "digest", tz="Asia/Tokyo")
    await visitor.open(f"/schedules?owner={owner}")
    assert "Times are in UTC" in await visitor.page.locator("header").inner_text()
    assert not await visitor.page.locator("#zone").is_visible()
    at = to_datetime(stored["next_fire_at"])
    (shown,) = await visitor.page.locator("main time[data-ms]").all_inner_texts()
    assert re.fullmatch(rf"{at:%a} {at.day} {at:%b}( {at.year})?, {at:%H:%M} UTC", shown)
