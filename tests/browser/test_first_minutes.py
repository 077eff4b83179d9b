"""The first minutes of a new user: an empty store, a first schedule, a failure and its repair."""

from __future__ import annotations

from pathlib import Path

from .conftest import Visit
from .handlers import WHY
from .pictures import picture
from .service import Service, serving, until
from .visitor import DESK

OTHERS: dict[tuple[str, str], dict[str, object]] = {
    ("ada", "digest"): {"when": "0 9 * * mon-fri", "tz": "Europe/Paris", "payload": {"to": "ada@example.org"}},
    ("ada", "newsletter"): {"when": "weekly(tue 09:00, thu 17:30)", "tz": "Europe/Paris"},
    ("grace", "backup"): {"when": "30 2 * * *", "tz": "America/New_York"},
    ("grace", "invoice"): {"when": "0 8 1 * *", "tz": "America/New_York"},
    ("linus", "release"): {"when": "0 17 * * fri", "tz": "Europe/Helsinki", "enabled": False},
    ("margaret", "price"): {"when": "0 0 * * *", "tz": "America/Chicago", "policy": {"spread": 600}},
    ("margaret", "heartbeat"): {"when": "@every 5s"},
    ("edsger", "reminder"): {"when": "*/15 9-17 * * mon-fri", "tz": "Europe/Amsterdam"},
}


async def test_from_an_empty_store_to_a_failure_that_was_mended(visit: Visit, tmp_path: Path) -> None:
    async with serving(f"sqlite:///{tmp_path / 'tickler.db'}", tmp_path) as service:
        new = await visit(service, size=DESK)

        # The store is empty, and the page says where to begin.
        await new.open("/")
        await new.sees("No schedules yet")
        await new.follow("Create the first schedule")

        # The form previews what is typed, and shows errors at once.
        preview = new.page.locator("#preview li")
        await new.fill(when="0 9 * * tue,thu", tz="Europe/Berlin")
        await preview.filter(has_text=", 09:00 UTC+").nth(9).wait_for()
        assert await preview.count() == 10
        await new.sees("at 09:00")
        new.refusals.add(422)
        await new.fill(when="0 25 * * *")
        await new.sees("25")
        await preview.first.wait_for(state="detached")
        await new.page.locator("#when[aria-invalid]").wait_for()
        await new.fill(owner="ada", key="first", when="0 9 * * tue,thu")
        await preview.nth(9).wait_for()
        await picture(new, "form", tmp_path)

        # The schedule is created, and fires live.
        await new.fill(when="* * * * * *", kind="python", to="echo", payload='{"hello": "world"}')
        await preview.filter(has_text="UTC+1").nth(9).wait_for()
        await new.press("Create schedule")
        assert new.path == "/schedules/ada/first"
        await new.sees("Saved.")
        for (owner, key), fields in OTHERS.items():
            await service.put(owner, key, **fields)
        await new.go("Now")
        await new.page.locator("#live[data-state=on]").wait_for()
        fires = new.page.locator("#fires li").filter(has_text="ada / first").filter(has_text="delivered")
        await fires.nth(2).wait_for()
        assert await new.page.locator("#no-fires").is_hidden()

        # Broken: the schedule fails, and its page says why.
        await new.open("/schedules/ada/first/edit")
        await new.page.get_by_text("Policy and bounds").click()
        await new.fill(to="failing", attempts="1")
        await new.press("Save")
        await until("a fire is dead", lambda: service.dead("ada"))
        await new.reload()
        why = new.page.locator(".why")
        await new.sees(WHY, why)
        await new.open("/")
        await new.page.locator("#fires li").filter(has_text="dead").nth(1).wait_for()
        await new.page.locator("[data-number=dead]").filter(has_not_text="0").wait_for()
        await picture(new, "now", tmp_path)

        # Fixed: new fires are delivered, and dead ones are retried.
        await new.open("/schedules/ada/first/edit")
        await new.fill(to="echo")
        await new.press("Save")
        await until("it delivers again", lambda: _delivers(service))
        await new.reload()
        await picture(new, "schedule", tmp_path)
        await new.go("Dead")
        await picture(new, "failed", tmp_path)
        await new.page.get_by_text("more").click()
        dead = await service.dead("ada")
        await new.press("Retry", new.row("ada", "first").first)
        await new.sees("The fire is queued for a retry.")
        assert len(await service.dead("ada")) == len(dead) - 1
        await until("the fire is delivered", lambda: _was_delivered(service, dead[0]["id"]))
        await new.open("/schedules/ada/first")
        await new.sees("retried")

        await new.go("Schedules")
        await picture(new, "schedules", tmp_path)
        await new.go("Forecast")
        await new.sees("8 schedules, counted")
        await picture(new, "forecast", tmp_path)
        await new.go("Doctor")
        await picture(new, "doctor", tmp_path)
        await new.go("Now")
        await new.page.locator("#live[data-state=on]").wait_for()
        new.may_be_cut_off = True

    # The service stops while the page is open: it ends at once, and the page says so.
    await new.page.locator("#live[data-state=lost]").wait_for()
    await new.sees("not connected")
    opacity = await new.page.locator(".number").first.evaluate("(element) => getComputedStyle(element).opacity")
    assert float(opacity) < 1, "counts that may be outdated are pale"


async def _delivers(service: Service) -> bool:
    return (await service.history("ada", "first"))[0] == "delivered"


async def _was_delivered(service: Service, fire_id: str) -> bool:
    entries = (await service.call("GET", "/schedules/ada/first/fires"))["items"]
    return any(entry["happened"] == "delivered" and entry["fire_id"] == fire_id for entry in entries)
