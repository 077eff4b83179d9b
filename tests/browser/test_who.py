"""Sign in and out; tokens that are limited to an owner, and tokens that may only read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio

from tickler import HttpTarget, Policy, PythonTarget, Schedule, connect

from .conftest import Visit
from .service import Service, path, serving, until
from .visitor import Visitor

HOOK = HttpTarget("https://hooks.example.org/a")
FAILING = PythonTarget("failing")


class Guarded(NamedTuple):
    """A service with three tokens: an operator's, Ada's, and one that may only read."""

    service: Service
    operator: str
    ada: str
    reader: str

    async def as_operator(self, method: str, path: str, body: object = None) -> object:
        return await self.service.call(method, path, body, authorization=f"Bearer {self.operator}")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    url = f"sqlite:///{folder / 'tickler.db'}"
    async with connect(url) as t:
        for owner in ("ada", "grace"):
            await t.schedules.put(Schedule(owner=owner, key="digest", when="0 9 * * *", target=HOOK))
            await t.schedules.put(
                Schedule(owner=owner, key="broken", when="0 0 1 1 *", target=FAILING, policy=Policy(attempts=1))
            )
            await t.trigger(owner, "broken")
        _, operator = await t.tokens.create(["read", "write", "operate"], name="olga")
        _, ada = await t.tokens.create(["read", "write"], owner="ada", name="ada's")
        _, reader = await t.tokens.create(["read"], name="reader")
    async with serving(url, folder) as service:
        guarded = Guarded(service, operator, ada, reader)
        await until("both are dead", lambda: _both_dead(guarded))
        yield guarded


async def _both_dead(guarded: Guarded) -> bool:
    found = await guarded.as_operator("GET", "/fires?state=dead")
    assert isinstance(found, dict)
    return len(found["items"]) == 2


async def signed_in(visit: Visit, guarded: Guarded, token: str) -> Visitor:
    """Sign in by the form, without an audit: the first test below audits it."""
    visitor = await visit(guarded.service)
    await visitor.page.goto(f"{guarded.service.url}/login?next=/login")
    await visitor.fill(token=token)
    async with visitor.page.expect_navigation():
        await visitor.page.keyboard.press("Enter")
    return visitor


async def test_signing_in_leads_to_the_requested_page_and_signing_out_ends_the_session(visit: Visit, guarded: Guarded) -> None:
    visitor = await visit(guarded.service)
    visitor.refusals.add(401)
    await visitor.open("/schedules")
    assert visitor.path.startswith("/login?")
    await visitor.fill(token="tk_0123456789abcdef_" + "0" * 64)
    await visitor.press("Sign in")
    await visitor.sees("Invalid token.")
    await visitor.fill(token=guarded.operator)
    await visitor.press("Sign in")
    assert visitor.path == "/schedules"
    await visitor.sees("olga", visitor.page.locator("header"))
    (cookie,) = await visitor.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert guarded.operator not in cookie["value"]
    await visitor.press("Sign out")
    await visitor.sees("You are signed out.")
    await visitor.open("/schedules")
    assert visitor.path.startswith("/login?")


async def test_the_audit_log_names_the_token(visit: Visit, guarded: Guarded) -> None:
    visitor = await signed_in(visit, guarded, guarded.operator)
    await visitor.open("/schedules/grace/digest")
    await visitor.press("Pause")
    await visitor.press("Resume")
    await visitor.go("Audit")
    assert (await visitor.row("grace", "digest").first.locator("td").all_inner_texts())[1:3] == ["olga", "resumed"]


async def test_a_bound_token_sees_its_own_on_every_page_and_nothing_else(visit: Visit, guarded: Guarded) -> None:
    visitor = await signed_in(visit, guarded, guarded.ada)
    parts = await visitor.page.get_by_role("navigation").get_by_role("link").all_inner_texts()
    assert parts == ["Now", "Schedules", "Dead 1", "Audit"], "and counts no dead fires of others"
    await visitor.open("/")
    await visitor.page.locator("#live[data-state=on]").wait_for()
    assert await visitor.page.locator("[data-number=sleeping]").inner_text() == "2"
    assert await visitor.page.locator("[data-number=dead]").inner_text() == "1"
    assert await visitor.page.locator("#workers").count() == 0
    for place in ("/", "/schedules", "/schedules?owner=grace", "/failed", "/audit", "/schedules/ada/broken"):
        await visitor.open(place)
        assert "grace" not in await visitor.page.content(), place
    await visitor.open("/schedules?owner=grace")
    assert await visitor.keys() == ["broken", "digest"]
    assert await visitor.page.locator("[name=owner]").count() == 0
    await visitor.open("/failed/retry-all")
    await visitor.sees("1 dead fire of 1 schedule at once")
    visitor.refusals.update((403, 404))
    for place in ("/forecast", "/doctor"):
        assert await visitor.open(place) == 403
    for place in ("/schedules/grace/digest", "/schedules/grace/digest/edit"):
        assert await visitor.open(place) == 404


async def test_a_bound_token_hears_of_its_own_fires_alone(visit: Visit, guarded: Guarded) -> None:
    visitor = await signed_in(visit, guarded, guarded.ada)
    await visitor.open("/")
    await visitor.page.locator("#live[data-state=on]").wait_for()
    for owner in ("grace", "ada"):
        await guarded.as_operator("POST", f"{path(owner, 'broken')}/trigger")
    await visitor.page.locator("#fires li").filter(has_text="ada / broken").first.wait_for()
    assert "grace" not in await visitor.reads()


async def test_a_bound_token_writes_http_targets_of_its_own_alone(visit: Visit, guarded: Guarded) -> None:
    visitor = await signed_in(visit, guarded, guarded.ada)
    visitor.refusals.add(422)
    await visitor.open("/new-schedule")
    assert await visitor.page.locator("[name=kind] option").all_inner_texts() == ["POST to a URL"]
    assert await visitor.page.input_value("[name=owner]") == "ada"
    await visitor.fill(key="mine", when="@daily", to="https://hooks.example.org/mine")
    await visitor.press("Create schedule")
    await visitor.sees("Saved.")
    await visitor.open("/new-schedule")
    await visitor.page.evaluate("""() => {
        document.querySelector("[name=owner]").value = "grace";
        document.querySelector("[name=key]").value = "theirs";
        document.querySelector("[name=to]").value = "https://hooks.example.org/theirs";
    }""")
    await visitor.press("Create schedule")
    await visitor.sees("is not yours")
    await visitor.open("/new-schedule")
    await visitor.page.evaluate("""() => {
        document.querySelector("[name=kind]").innerHTML = "<option value=python>python</option>";
        document.querySelector("[name=key]").value = "handler";
        document.querySelector("[name=to]").value = "echo";
    }""")
    await visitor.press("Create schedule")
    await visitor.sees("this token may write HTTP targets only")
    keys = [
        each["key"] for each in (await guarded.service.call("GET", "/schedules", authorization=f"Bearer {guarded.ada}"))["items"]
    ]
    assert keys == ["broken", "digest", "mine"]


async def test_a_bound_token_is_told_why_it_cannot_edit_what_goes_to_a_handler(visit: Visit, guarded: Guarded) -> None:
    visitor = await signed_in(visit, guarded, guarded.ada)
    await visitor.open("/schedules/ada/digest")
    assert "Edit" in await visitor.buttons()
    await visitor.open("/schedules/ada/broken")
    assert "Edit" not in await visitor.buttons()
    await visitor.sees("Your token cannot write this target")
    visitor.refusals.add(403)
    assert await visitor.open("/schedules/ada/broken/edit") == 403
    await visitor.sees("the target is not a URL")


async def test_a_token_that_may_only_look_finds_no_button_and_is_refused(visit: Visit, guarded: Guarded) -> None:
    visitor = await signed_in(visit, guarded, guarded.reader)
    for place in ("/", "/schedules", "/schedules/ada/broken", "/failed", "/doctor", "/forecast", "/audit"):
        await visitor.open(place)
        assert await visitor.buttons() == [], place
    visitor.refusals.add(403)
    for place in ("/new-schedule", "/schedules/ada/digest/edit", "/failed/retry-all"):
        assert await visitor.open(place) == 403
    await visitor.open("/schedules")
    for place in (
        "/schedules/ada/digest/pause",
        "/schedules/ada/digest/delete",
        "/failed/retry-all",
        "/doctor/repair",
        "/new-schedule",
    ):
        assert await posted(visitor, place) == 403, place
    stored = await guarded.service.call("GET", "/schedules/ada/digest", authorization=f"Bearer {guarded.reader}")
    assert stored["state"] == "active"


async def test_a_form_of_another_session_is_refused(visit: Visit, guarded: Guarded) -> None:
    first, second = await asyncio.gather(signed_in(visit, guarded, guarded.operator), signed_in(visit, guarded, guarded.ada))
    await first.open("/schedules")
    stolen = await first.page.input_value("[name=form_token] >> nth=0")
    second.refusals.add(403)
    assert await posted(second, "/schedules/ada/digest/pause", stolen) == 403
    assert await posted(second, "/schedules/ada/digest/pause", "") == 403


async def posted(visitor: Visitor, place: str, form_token: str | None = None) -> int:
    """Post a form by script with the token of the open page, unless another is given; return the status."""
    status: int = await visitor.page.evaluate(
        """async ([place, given]) => {
            const token = given ?? document.querySelector("[name=form_token]").value;
            return (await fetch(place, { method: "POST", body: new URLSearchParams({ form_token: token }) })).status;
        }""",
        [place, form_token],
    )
    return status
