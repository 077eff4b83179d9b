"""The form that creates and edits a schedule, sent as a browser sends it."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping
from urllib.parse import urlencode

import pytest

from server.served import Answer, Api, serving
from tickler import HttpTarget, ManualClock, PythonTarget, Schedule, Tickler, connect

EDIT = "/schedules/u1/digest/edit"
FORM = "application/x-www-form-urlencoded"


async def filled(api: Api, path: str = EDIT) -> dict[str, str]:
    """Return the fields of a form with the values that the page gives them."""
    page = (await api("GET", path, headers={"accept": "text/html"})).body.decode()
    inputs = re.findall(r'<input [^>]*?name="(\w+)"[^>]*?value="([^"]*)"', page)
    areas = re.findall(r'<textarea [^>]*?name="(\w+)"[^>]*>([^<]*)<', page)
    options = re.findall(
        r'<select [^>]*?name="(\w+)"[^>]*>.*?<option(?: value="(\w+)")?[^>]*? selected>([^<]*)<', page, re.DOTALL
    )
    fields = {name: html.unescape(value) for name, value in [*inputs, *areas]}
    return fields | {name: value or shown for name, value, shown in options} | {"enabled": "on"}


async def send(api: Api, fields: Mapping[str, str], path: str = EDIT) -> Answer:
    return await api("POST", path, urlencode(fields).encode(), headers={"content-type": FORM, "accept": "text/html"})


async def test_a_form_of_a_schedule_that_was_deleted_and_created_anew_changes_nothing(
    t: Tickler, api: Api, clock: ManualClock
) -> None:
    await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily"))
    fields = await filled(api)
    await t.schedules.delete("u1", "digest")
    clock.advance(1)
    anew = await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily", payload="another's"))
    answer = await send(api, {**fields, "payload": '"mine"'})
    assert (answer.status, b"changed this schedule after you opened the form" in answer.body) == (422, True)
    assert await t.schedules.get("u1", "digest") == anew
    assert (await send(api, {**await filled(api), "payload": '"mine"'})).status == 303
    assert (await send(api, {**fields, "version": "3"})).status == 422


@pytest.mark.parametrize("typed", ["[" * 100_000, "[1]", "many", "1e999", "9" * 5_000, '{"a": 1, "a": 2}', "\ud800"])
@pytest.mark.parametrize("name", ["spread", "attempts", "timeout"])
async def test_a_field_that_is_not_a_number_shows_the_error(t: Tickler, api: Api, name: str, typed: str) -> None:
    before = await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily"))
    fields = {**await filled(api), name: typed}
    body = urlencode(fields, errors="surrogatepass").encode()
    answer = await api("POST", EDIT, body, headers={"content-type": FORM, "accept": "text/html"})
    assert answer.status in (400, 422)
    assert typed == "\ud800" or f'id="{name}-error"'.encode() in answer.body
    assert await t.schedules.get("u1", "digest") == before


@pytest.mark.parametrize("depth", [100, 900, 5_000, 100_000])
async def test_a_payload_of_any_depth_is_kept_or_refused(t: Tickler, api: Api, depth: int) -> None:
    await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily"))
    answer = await send(api, {**await filled(api), "payload": "[" * depth + "]" * depth})
    assert answer.status in (303, 422)


HOOK = HttpTarget("https://example.org/a", "raw", {"x-team": "blue"}, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")


@pytest.mark.parametrize("key", [True, False])
async def test_another_url_keeps_what_is_sent_along_and_what_is_sealed_stays_with_its_host(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, sqlite_url: str, key: bool
) -> None:
    monkeypatch.setenv("TICKLER_KEY", base64.urlsafe_b64encode(bytes(32)).decode())
    async with connect(sqlite_url, clock=clock) as t:
        await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily", target=HOOK))
    if not key:
        monkeypatch.delenv("TICKLER_KEY")
    async with connect(sqlite_url, clock=clock) as t, serving(t) as api:
        assert (await send(api, {**await filled(api), "to": "https://EXAMPLE.org:443/b"})).status == 303
        stored = await t.schedules.get("u1", "digest")
        assert stored is not None
        assert isinstance(stored.target, HttpTarget)
        assert (stored.target.url, stored.target.body) == ("https://EXAMPLE.org:443/b", "raw")
        assert (list(stored.target.headers or {}), bool(stored.target.sealed)) == (["x-team"], True)
        for to in ("https://example.com/b", "http://example.org/b", "https://example.org:8443/b", "nowhere", "https://a@b/"):
            refused = await send(api, {**await filled(api), "to": to})
            assert (refused.status, b'id="to-error"' in refused.body) == (422, True), to
        assert await t.schedules.get("u1", "digest") == stored


async def test_a_url_in_place_of_a_handler_name_is_an_error_at_its_field(t: Tickler, api: Api) -> None:
    before = await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily", target=PythonTarget("echo")))
    answer = await send(api, {**await filled(api), "to": "https://example.org/hook"})
    assert (answer.status, b"choose &#34;POST to a URL&#34;" in answer.body) == (422, True)
    assert await t.schedules.get("u1", "digest") == before


async def test_another_host_keeps_the_kind_of_body(t: Tickler, api: Api) -> None:
    await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily", target=HttpTarget("https://example.org/a", "raw")))
    assert (await send(api, {**await filled(api), "to": "https://example.com/b"})).status == 303
    stored = await t.schedules.get("u1", "digest")
    assert stored is not None
    assert stored.target == HttpTarget("https://example.com/b", "raw")


async def test_the_audit_log_has_the_fire_and_the_token_of_a_button(t: Tickler, api: Api) -> None:
    await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily", target=PythonTarget("echo")))
    token, text = await t.tokens.create(["read", "write"], name="ops")
    by_token = api.bearing(text)
    page = (await by_token("GET", "/schedules/u1/digest", headers={"accept": "text/html"})).body.decode()
    fields = {"form_token": re.findall(r'name="form_token" value="([^"]+)"', page)[0]}
    assert (await send(by_token, fields, "/schedules/u1/digest/trigger")).status == 303
    (fire,) = (await t.fires.list()).items
    (entry,) = (await t.audit.list()).items
    assert (entry.action, entry.detail, entry.by, entry.token_id) == ("triggered", fire.id, "ops", token.id)
