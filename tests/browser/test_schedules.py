"""The list of schedules, the page of one schedule, and the form."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from tickler.observe.human_format import split_at_instants

from .conftest import Visit
from .service import Service, path, until
from .visitor import Visitor

DELIVERED = ".timeline .mark.state-delivered"
HOOK = {"type": "http", "url": "https://hooks.example.org/a"}


async def filtered(visitor: Visitor, owner: str = "", key: str = "", state: str = "") -> list[str]:
    """Fill in the filter above the list, and return the listed keys."""
    if not visitor.path.startswith("/schedules?"):
        await visitor.open("/schedules")
    await visitor.fill(owner=owner, key=key, state=state)
    await visitor.press("Filter")
    return await visitor.keys()


# The list.


async def test_schedules_are_found_by_owner_by_how_their_keys_begin_and_by_state(
    visitor: Visitor, service: Service, owner: str
) -> None:
    for key in ("digest", "digest-2", "report"):
        await service.put(owner, key)
    await service.put(owner, "asleep", enabled=False)
    await service.put(f"{owner}2", "digest-3")
    assert await filtered(visitor, owner=owner) == ["asleep", "digest", "digest-2", "report"]
    assert await filtered(visitor, owner=owner, key="digest") == ["digest", "digest-2"]
    assert await filtered(visitor, owner=owner, state="paused") == ["asleep"]
    assert await filtered(visitor, owner=owner, key="dig", state="active") == ["digest", "digest-2"]
    assert await filtered(visitor, owner="nobody") == []
    await visitor.sees("nobody has no schedules.")
    assert await filtered(visitor, owner=owner, key="x", state="failing") == []
    await visitor.sees(f"{owner} has no failing schedules whose key begins with x.")


async def test_a_key_without_an_owner_is_explained(visitor: Visitor, service: Service) -> None:
    visitor.refusals.add(422)
    assert await filtered(visitor, key="digest") == []
    await visitor.sees("enter an owner too")
    assert await visitor.page.input_value("[name=key]") == "digest", "the filter is still there"


async def test_what_would_take_a_look_at_everything_is_left_to_the_doctor(visitor: Visitor, service: Service) -> None:
    visitor.refusals.add(422)
    assert await visitor.open("/schedules?state=unindexed") == 422
    await visitor.sees("press Check everything on the page Doctor")
    states = await visitor.page.locator("[name=state] option").all_inner_texts()
    assert states == ["any", "failing", "active", "paused", "finished", "unreadable"]


async def test_a_long_list_comes_in_pages_that_keep_the_filter(visitor: Visitor, service: Service, owner: str) -> None:
    keys = [f"job-{number:02}" for number in range(61)]
    await service.put_many(owner, keys)
    seen = await filtered(visitor, owner=owner, key="job", state="active")
    while await visitor.page.get_by_role("link", name="Next page").count():
        await visitor.follow("Next page")
        assert await visitor.page.input_value("[name=owner]") == owner
        seen += await visitor.keys()
    assert seen == keys


async def test_the_next_fire_is_shown_in_the_zone_of_the_schedule_and_of_the_viewer(
    visit: Visit, service: Service, owner: str
) -> None:
    stored = await service.put(owner, "digest", tz="Asia/Tokyo")
    there, here = (
        datetime.fromtimestamp(stored["next_fire_at"] / 1000, ZoneInfo(zone)) for zone in ("Asia/Tokyo", "Asia/Kolkata")
    )
    visitor = await visit(service, zone="Asia/Kolkata")
    await visitor.open(f"/schedules?owner={owner}")
    row = visitor.row("digest")
    shown_there, shown_here = (rf"{at:%a} {at.day} {at:%b}( {at.year})?, {at:%H:%M}" for at in (there, here))
    assert re.fullmatch(rf"{shown_there} UTC\+9 Asia/Tokyo", await row.locator("td").nth(2).inner_text())
    assert re.fullmatch(rf"{shown_here} UTC\+5:30", await row.locator("td").nth(3).inner_text())
    await visitor.open(path(owner, "digest"))
    (first, *others) = await visitor.page.locator("table.plain tbody tr").all_inner_texts()
    assert re.fullmatch(rf"{shown_there} UTC\+9\t{shown_here} UTC\+5:30", first)
    assert len(others) == 9


async def test_instants_of_another_year_and_jumps_of_the_clock_are_shown(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "spring", when="30 2 * 3 sun")
    await visitor.open(path(owner, "spring"))
    rows = visitor.page.locator("table.plain tbody tr")
    await visitor.sees("02:30 does not exist that day: fires at 03:00", rows.filter(has_text="03:00").first)
    there, here = (await rows.last.inner_text()).split("\t")
    assert re.search(r" 20\d\d, ", there)
    assert re.search(r" 20\d\d, ", here)


async def test_one_is_paused_resumed_and_fired_from_the_list(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await visitor.open(f"/schedules?owner={owner}")
    await visitor.press("Pause", visitor.row("digest"))
    await visitor.sees("Paused. The schedule does not fire until you resume it.")
    assert visitor.path == f"/schedules?owner={owner}", "the same list as before"
    assert (await service.get(owner, "digest"))["state"] == "paused"
    assert await visitor.row("digest").locator("button").all_inner_texts() == ["Resume", "Fire now"]
    await visitor.press("Resume", visitor.row("digest"))
    assert (await service.get(owner, "digest"))["state"] == "active"
    await visitor.press("Fire now", visitor.row("digest"))
    assert await until("it is delivered", lambda: service.history(owner, "digest")) == ["delivered"]


async def test_names_may_be_of_any_kind(visitor: Visitor, service: Service, owner: str) -> None:
    whose, key = f"{owner}/50%", "<b>ünï</b> & 'co' /a?b#c"
    await service.put(whose, key)
    assert await filtered(visitor, owner=whose) == [key]
    await visitor.follow(f"{whose} / {key}")
    await visitor.press("Pause")
    assert await visitor.page.locator("h1").inner_text() == key
    assert (await service.get(whose, key))["state"] == "paused"
    await visitor.follow("Edit")
    await visitor.fill(payload='{"a": 1}')
    await visitor.press("Save")
    assert (await service.get(whose, key))["payload"] == {"a": 1}


# One schedule.


async def test_its_page_shows_what_it_is_what_happened_and_why(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest", payload={"to": "ada"}, policy={"attempts": 3})
    await service.call("POST", f"{path(owner, 'digest')}/trigger")
    await until("it is delivered", lambda: service.history(owner, "digest"))
    await visitor.open(path(owner, "digest"))
    text = await visitor.reads()
    for each in ("At 09:00 on weekdays", "Europe/Berlin", "handler echo", "up to 3 attempts", '"to": "ada"'):
        assert each in text
    why = await service.call("GET", f"{path(owner, 'digest')}/why")
    said = await visitor.page.locator(".why .sentence").inner_text()
    assert all(part in said for part in split_at_instants(why["sentence"].replace("`", "")) if isinstance(part, str))
    facts = await visitor.page.locator(".why .chain li").all_inner_texts()
    assert [fact.split("\n")[0].split()[0] for fact in facts] == [fact["about"].split()[0] for fact in why["facts"]]
    assert await visitor.page.locator(DELIVERED).count() == 1
    await visitor.page.get_by_text("response body").click()
    await visitor.sees('{"to":"ada"}')


async def test_a_mark_of_the_timeline_leads_to_what_happened_then(visitor: Visitor, service: Service, owner: str) -> None:
    await service.kill_fires(owner, "broken", 2)
    await service.put(owner, "broken", when="0 0 1 1 *")
    await service.call("POST", f"{path(owner, 'broken')}/trigger")
    await until("it is delivered", lambda: _has_delivered(service, owner))
    await visitor.open(path(owner, "broken"))
    latest = await visitor.page.locator(DELIVERED).bounding_box()
    assert latest is not None
    assert 0 < latest["x"] < 390, "the latest is in sight"
    for marked in ("#fires", "#entry-"):  # a dead fire, and the attempt that it died of
        assert await visitor.page.locator(f".timeline a[href^='{marked}'] .mark.state-dead").count() == 2
    await visitor.page.locator(DELIVERED).locator("circle").click()
    assert visitor.path.endswith("#entry-0")
    await visitor.sees("delivered", visitor.page.locator("tr:target"))


async def test_many_dead_fires_make_no_long_page_and_are_retried_together(visitor: Visitor, service: Service, owner: str) -> None:
    await service.kill_fires(owner, "broken", 12)
    await service.kill_fires(owner, "other")
    await visitor.open(path(owner, "broken"))
    assert await visitor.page.locator(".why .chain li").filter(has_text="are dead").count() == 1
    assert await visitor.page.locator("#fires tbody tr").count() == 3
    await visitor.sees("9 others are not listed.")
    await visitor.follow("Show all dead fires")
    assert await visitor.page.locator("table.list tbody tr").count() == 12
    await visitor.press("Cancel", visitor.row("broken").first, agree=True)
    assert await visitor.page.locator("table.list tbody tr").count() == 11, "still only those"
    await visitor.follow("Retry all…")
    await visitor.sees("11 dead fires of 1 schedule and 1 owner")
    await service.put(owner, "broken", when="0 0 1 1 *")
    await visitor.press("Retry 11 fires")
    assert visitor.path == path(owner, "broken")
    assert [fire["key"] for fire in await service.dead(owner)] == ["other"]


async def test_it_is_fired_paused_and_resumed_from_its_page(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await visitor.open(path(owner, "digest"))
    await visitor.press("Fire now")
    await visitor.sees(f"{owner}/digest queued for delivery.")
    await until("it is delivered", lambda: service.history(owner, "digest"))
    await visitor.press("Pause")
    await visitor.sees("paused", visitor.page.locator(".row"))
    await visitor.sees("No upcoming fires.")
    await visitor.press("Resume")
    await visitor.sees("active", visitor.page.locator(".row"))
    assert await visitor.page.locator("table.plain tbody tr").count() == 10


async def test_it_is_deleted_only_after_a_question(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await service.call("POST", f"{path(owner, 'digest')}/trigger")
    await until("it is delivered", lambda: service.history(owner, "digest"))
    await visitor.open(path(owner, "digest"))
    await visitor.press("Delete", agree=False)
    assert visitor.questions == [f"Delete {owner} / digest? Its pending and dead fires are cancelled."]
    assert (await service.get(owner, "digest"))["state"] == "active"
    await visitor.press("Delete", agree=True)
    await visitor.sees("Deleted.")
    assert (await service.call("GET", f"/schedules?owner={owner}"))["items"] == []
    await visitor.open(path(owner, "digest"))
    await visitor.sees("deleted")
    await visitor.sees("delivered")
    assert await visitor.buttons() == [], "there is nothing left to change"


async def test_without_scripts_it_is_asked_before_it_is_deleted(visit: Visit, service: Service, owner: str) -> None:
    await service.put(owner, "a/b?")
    visitor = await visit(service, scripts=False)
    await visitor.open(path(owner, "a/b?"))
    await visitor.press("Delete")
    await visitor.sees(f"Delete {owner} / a/b?? Its pending and dead fires are cancelled.")
    await visitor.follow("Go back")
    assert visitor.path == path(owner, "a/b?")
    await visitor.press("Delete")
    await visitor.press("Delete")
    await visitor.sees("Deleted.")
    assert (await service.call("GET", f"/schedules?owner={owner}"))["items"] == []


async def test_what_is_not_there_is_said_so(visitor: Visitor, service: Service, owner: str) -> None:
    visitor.refusals.add(404)
    assert await visitor.open(path(owner, "nothing")) == 404
    await visitor.sees("Not Found")
    assert await visitor.open("/nowhere") == 404


# Live.


async def test_its_page_follows_what_happens(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await service.put(owner, "other")
    await visitor.open(path(owner, "digest"))
    await visitor.page.locator("#live[data-state=on]").wait_for()
    await visitor.page.evaluate("window.isTheSame = true")
    await service.call("POST", f"{path(owner, 'other')}/trigger")
    await service.call("POST", f"{path(owner, 'digest')}/trigger")
    await visitor.page.locator(DELIVERED).wait_for()
    assert await visitor.page.locator("[data-part=history] tbody tr[data-at]").count() == 1
    assert (await visitor.page.locator("#news").inner_text()).startswith("Delivered at ")
    await visitor.look()
    assert await visitor.page.evaluate("window.isTheSame"), "the page was not reloaded"


async def test_a_live_update_keeps_open_details_and_the_focus(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await service.call("POST", f"{path(owner, 'digest')}/trigger")
    await until("it is delivered", lambda: service.history(owner, "digest"))
    await visitor.open(path(owner, "digest"))
    await visitor.page.locator("#live[data-state=on]").wait_for()
    rows = visitor.page.locator("[data-part=history] tbody tr[data-at]")
    await rows.locator("summary").click()
    await service.call("POST", f"{path(owner, 'digest')}/trigger")
    await rows.nth(1).wait_for()
    assert await rows.nth(0).locator("details[open]").count() == 0
    assert await rows.nth(1).locator("details[open] summary:focus").count() == 1


async def test_a_notice_is_shown_once(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await visitor.open(f"/schedules?owner={owner}&notice=put")
    await visitor.sees("Saved.")
    assert visitor.path == f"/schedules?owner={owner}"
    await visitor.reload()
    assert "Saved." not in await visitor.reads()


# The form.


async def test_what_is_wrong_is_said_at_its_field_and_nothing_is_lost(visitor: Visitor, service: Service, owner: str) -> None:
    visitor.refusals.add(422)
    await visitor.open("/new-schedule")
    await visitor.fill(owner=owner, key="x" * 2000, when="0 9 * * *", tz="Europe/Berlin", payload='{"a": 1}', to="echo")
    await visitor.page.locator("[name=enabled]").uncheck()
    await visitor.press("Create schedule")
    assert "1" in await visitor.page.locator("#key-error").inner_text()
    assert await visitor.page.locator("#key[aria-describedby=key-error]:focus").count() == 1
    await visitor.fill(key="digest", payload='{"a": ')
    await visitor.press("Create schedule")
    await visitor.sees("the payload", visitor.page.locator("#payload-error"))
    await visitor.fill(payload='{"a": 1}', tz="Europe/Nowhere")
    await visitor.press("Create schedule")
    await visitor.sees("Europe/Nowhere", visitor.page.locator("#tz-error"))
    await visitor.fill(tz="Europe/Berlin", attempts="many")
    await visitor.press("Create schedule")
    await visitor.sees("must be a number", visitor.page.locator("#attempts-error"))
    await visitor.fill(attempts="5", starts_at="tomorrow")
    await visitor.press("Create schedule")
    await visitor.sees("is not an instant", visitor.page.locator("#starts_at-error"))
    await visitor.fill(starts_at="")
    await visitor.press("Create schedule")
    stored = await service.get(owner, "digest")
    assert (stored["payload"], stored["policy"], stored["state"]) == ({"a": 1}, {"attempts": 5}, "paused")
    assert stored["tz"] == "Europe/Berlin"


async def test_the_field_of_the_target_is_named_for_its_kind(visitor: Visitor, service: Service) -> None:
    await visitor.open("/new-schedule")
    field = visitor.page.locator("#to")
    assert await visitor.page.get_by_label("Handler name").input_value() == "echo"
    await visitor.fill(kind="http")
    assert await visitor.page.get_by_label("URL", exact=True).input_value() == ""
    await visitor.look()
    await visitor.fill(kind="none")
    assert not await field.is_visible()


async def test_a_new_schedule_replaces_no_other(visitor: Visitor, service: Service, owner: str) -> None:
    visitor.refusals.add(422)
    await service.put(owner, "digest")
    await visitor.open("/new-schedule")
    await visitor.fill(owner=owner, key="digest", when="@daily")
    await visitor.press("Create schedule")
    await visitor.sees("already exists", visitor.page.locator("#key-error"))
    await visitor.fill(key="digest-2")
    await visitor.press("Create schedule")
    assert (await service.get(owner, "digest"))["version"] == 1
    assert (await service.get(owner, "digest-2"))["version"] == 1


async def test_examples_zones_and_marks_are_shown_while_typing(visit: Visit, service: Service) -> None:
    visitor = await visit(service, zone="Asia/Tokyo")
    await visitor.open("/new-schedule")
    assert await visitor.page.input_value("[name=tz]") == "Asia/Tokyo", "the viewer's own zone by default"
    await visitor.page.get_by_role("button", name="weekly(mon 08:30, fri 17:00)").click()
    items = visitor.page.locator("#preview li")
    await items.filter(has_text="08:30 UTC+9").first.wait_for()
    assert await items.filter(has_text="(").count() == 0, "the zone of the schedule is the chosen one"
    await visitor.sees("Monday")
    visitor.refusals.add(422)
    await visitor.fill(tz="Europe/Nowhere")
    await visitor.page.locator("#tz[aria-invalid=true][aria-describedby=preview-words]").wait_for()
    await visitor.fill(tz="Europe/Berlin", when="30 2 * 3 sun")
    await visitor.sees(", 10:30 UTC+9)")
    await items.filter(has_text="02:30 does not exist that day: fires at 03:00").first.wait_for()
    await visitor.fill(when="at(2020-01-01T00:00:00)")
    await visitor.sees("No upcoming fires.")


async def test_a_change_made_meanwhile_is_not_overwritten(visitor: Visitor, service: Service, owner: str) -> None:
    visitor.refusals.add(422)
    await service.put(owner, "digest")
    await visitor.open(f"{path(owner, 'digest')}/edit")
    await service.put(owner, "digest", payload={"by": "another"})
    await visitor.fill(payload='{"by": "me"}')
    await visitor.press("Save")
    await visitor.sees("Somebody else changed this schedule after you opened the form. Nothing was saved.")
    assert await visitor.page.locator("[aria-invalid]").count() == 0, "no field is at fault"
    assert (await service.get(owner, "digest"))["payload"] == {"by": "another"}
    await visitor.open(f"{path(owner, 'digest')}/edit")
    await visitor.fill(payload='{"by": "me"}')
    await visitor.press("Save")
    stored = await service.get(owner, "digest")
    assert (stored["payload"], stored["version"]) == ({"by": "me"}, 3)


async def test_what_the_form_does_not_show_stays_as_it_is(visitor: Visitor, service: Service, owner: str) -> None:
    target = {**HOOK, "body": "raw", "headers": {"x-team": "blue"}, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
    policy = {"missed": "all", "max_catchup": 7, "backoff": [1, 2], "timeout": 12.5, "spread": 60, "grace": 5, "attempts": 4}
    bounds = {"starts_at": "2026-01-01T00:00:00Z", "ends_at": "2040-01-01T00:00:00Z"}
    before = await service.put(owner, "hook", target=target, policy=policy, **bounds, delete_after=True)
    await visitor.open(f"{path(owner, 'hook')}/edit")
    await visitor.fill(when="30 9 * * mon-fri")
    await visitor.press("Save")
    after = await service.get(owner, "hook")
    assert after["when"] == "30 9 * * mon-fri"
    for each in ("target", "policy", "starts_at", "ends_at", "delete_after", "payload", "tz", "enabled"):
        assert after.get(each) == before.get(each), each
    assert after["target"]["sealed"], "the form hides the headers and keeps them"


async def test_what_the_form_shows_can_be_taken_away(visitor: Visitor, service: Service, owner: str) -> None:
    bounds = {"starts_at": "2026-01-01T00:00:00Z", "ends_at": "2040-01-01T00:00:00Z"}
    await service.put(owner, "hook", target=HOOK, payload={"a": 1}, policy={"spread": 60, "attempts": 4}, **bounds)
    await visitor.open(f"{path(owner, 'hook')}/edit")
    await visitor.page.get_by_text("Policy and bounds").click()
    await visitor.fill(spread="", attempts="", starts_at="", ends_at="", payload="", to="", kind="none")
    await visitor.press("Save")
    after = await service.get(owner, "hook")
    assert (after["payload"], after.get("policy", {}), after.get("target")) == (None, {}, None)
    assert not {"starts_at", "ends_at"} & set(after)


async def test_targets_of_other_kinds_are_kept(visitor: Visitor, service: Service, owner: str) -> None:
    target = {"type": "sqs", "arn": "arn:aws:sqs:eu-west-1:123456789012:queue"}
    await service.put(owner, "queue", target=target)
    await visitor.open(f"{path(owner, 'queue')}/edit")
    await visitor.fill(payload="[1]")
    await visitor.press("Save")
    after = await service.get(owner, "queue")
    assert (after["target"], after["payload"]) == (target, [1])


async def _has_delivered(service: Service, owner: str) -> bool:
    return "delivered" in await service.history(owner, "broken")
