"""The form that makes and changes a schedule, sent as a browser sends it."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from urllib.parse import urlencode

from server.served import Answer, Api
from tickler import ManualClock, Schedule, Tickler

EDIT = "/schedules/u1/digest/edit"
FORM = "application/x-www-form-urlencoded"


async def filled(api: Api, path: str = EDIT) -> dict[str, str]:
    """The fields of a form as they come, those that are typed into."""
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


async def test_a_form_of_what_was_deleted_and_made_anew_changes_nothing(t: Tickler, api: Api, clock: ManualClock) -> None:
    await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily"))
    fields = await filled(api)
    await t.schedules.delete("u1", "digest")
    clock.advance(1)
    anew = await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily", payload="another's"))
    answer = await send(api, {**fields, "payload": '"mine"'})
    assert (answer.status, b"was changed meanwhile" in answer.body) == (422, True)
    assert await t.schedules.get("u1", "digest") == anew
    assert (await send(api, {**await filled(api), "payload": '"mine"'})).status == 303
    assert (await send(api, {**fields, "version": "3"})).status == 422
