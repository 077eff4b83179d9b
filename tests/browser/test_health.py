"""Failing schedules look failing; paused schedules and passed checks do not."""

from __future__ import annotations

from tickler.observe.doctor import DEEP

from .handlers import WHY
from .service import Service, path, until
from .test_schedules import filtered
from .visitor import Visitor

# Replaces the event stream: sends an instant that has passed, and fires that ended in another order than they began.
FAKE_STREAM = """
window.EventSource = class extends EventTarget {
  constructor() {
    super();
    const now = Date.now();
    const stats = { now_ms: now, next_due_at: now - 1500, sleeping: 3, due: 1, late: 0, in_flight: 0, dead: 120, workers: [] };
    const fire = (key, ago) => ({ owner: "u1", key, at: now - ago, nominal_at: now - ago, happened: "delivered" });
    const fires = [fire("second", 5000), fire("fourth", 1000), fire("first", 9000), fire("third", 3000)];
    setTimeout(() => {
      this.dispatchEvent(new Event("open"));
      for (const each of fires) this.send("fire", each);
      this.send("stats", stats);
    });
  }
  send(kind, data) { this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data) })); }
  close() {}
};
"""


async def test_a_schedule_with_a_dead_fire_is_failing_in_the_list_on_its_page_and_in_the_navigation(
    visitor: Visitor, service: Service, owner: str
) -> None:
    await service.put(owner, "sound")
    await service.kill_fires(owner, "broken")
    assert await filtered(visitor, owner=owner) == ["broken", "sound"]
    broken, sound = visitor.row(owner, "broken"), visitor.row(owner, "sound")
    assert await broken.locator(".state").all_inner_texts() == ["dead", "failing"]
    assert await sound.locator(".state").all_inner_texts() == ["active"]
    assert await filtered(visitor, owner=owner, state="failing") == ["broken"]
    assert await filtered(visitor, owner=owner, key="so", state="failing") == []
    failed = visitor.page.locator("nav a[href='/failed'] .count")
    assert int(await failed.inner_text()) == len((await service.call("GET", "/fires?state=dead"))["items"])

    await visitor.open(path(owner, "broken"))
    assert await visitor.page.locator("h1 + span .state").all_inner_texts() == ["failing"]
    await visitor.sees(f"is dead ({WHY}", visitor.page.locator(".sentence"))
    await service.call("POST", f"{path(owner, 'broken')}/pause")
    await visitor.reload()
    assert await visitor.page.locator("h1 + span .state").all_inner_texts() == ["failing", "paused"]


async def test_a_paused_schedule_is_shown_as_paused_and_not_as_failing(visitor: Visitor, service: Service, owner: str) -> None:
    await service.put(owner, "digest")
    await service.call("POST", f"{path(owner, 'digest')}/trigger")

    async def delivered() -> bool:
        return await service.history(owner, "digest") == ["delivered"]

    await until("it is delivered", delivered)
    await service.call("POST", f"{path(owner, 'digest')}/pause")
    await visitor.open(path(owner, "digest"))
    assert await visitor.page.locator(".chain li.bad").count() == 0
    assert await visitor.page.locator(".chain li.idle b").all_inner_texts() == ["definition", "index"]
    await visitor.sees("paused", visitor.page.locator(".legend"))
    assert await visitor.page.locator(".timeline .paused rect").count() == 1


async def test_the_doctor_names_what_passed_and_a_repair_of_nothing_leaves_no_trace(
    visitor: Visitor, service: Service, owner: str
) -> None:
    await service.put(owner, "digest")
    before = [entry for entry in (await service.call("GET", "/audit"))["items"] if entry["action"] == "repaired"]
    await visitor.open("/doctor")
    passed = visitor.page.locator(".checks li")
    quick = await passed.count()
    await visitor.sees("this machine's time zone database is as new as the store's", passed)
    await visitor.press("Repair", agree=True)
    await visitor.sees("Nothing to repair.")
    await visitor.sees("every enabled schedule is in the index", passed)
    assert await passed.count() == quick + len(DEEP), "and the checks that read everything"
    assert [entry for entry in (await service.call("GET", "/audit"))["items"] if entry["action"] == "repaired"] == before


async def test_now_shows_no_next_instant_that_has_passed_and_fires_by_when_they_began(visitor: Visitor, service: Service) -> None:
    await visitor.page.add_init_script(FAKE_STREAM)
    await visitor.open("/")
    await visitor.sees("first")
    assert await visitor.page.locator("#fires b").all_inner_texts() == ["fourth", "third", "second", "first"]
    await visitor.page.locator("nav .count", has_text="99+").wait_for()
    assert await visitor.page.locator("#next-due").inner_text() == "now"


async def test_the_page_of_a_schedule_does_not_go_on_saying_when_it_fires_next(
    visitor: Visitor, service: Service, owner: str
) -> None:
    await service.put(owner, "digest")
    await visitor.page.clock.install()
    await visitor.open(path(owner, "digest"))
    async with visitor.page.expect_response(lambda answer: answer.request.resource_type == "fetch"):
        await visitor.page.clock.fast_forward(61_000)


async def test_a_target_that_would_be_refused_is_warned_of_in_the_form_and_on_its_page(
    visitor: Visitor, service: Service, owner: str
) -> None:
    await visitor.open("/new-schedule")
    await visitor.fill(owner=owner, key="hook", kind="http", to="http://127.0.0.1:8000/hook")
    needed = "set TICKLER_ALLOW_NETWORKS=127.0.0.0/8 where the worker runs"
    await visitor.sees(needed, visitor.page.locator("#to-warning"))
    await visitor.look()
    await visitor.fill(to="https://example.org/hook")
    await visitor.page.locator("#to-warning:empty").wait_for(state="attached")
    await visitor.fill(to="http://localhost:8000/hook")
    await visitor.press("Create schedule")
    await visitor.sees(needed, visitor.page.locator(".warning"))
