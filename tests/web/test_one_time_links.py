"""Codes that work once."""

from __future__ import annotations

import asyncio
import json

import pytest

from tickler import InvalidInput, ManualClock, Tickler
from tickler.records.kinds import web_kind
from tickler.web import OneTimeLinks


def links_of(t: Tickler, application: str = "notes") -> OneTimeLinks:
    return OneTimeLinks(t.store.records, t.clock, record_kind=web_kind(application))


async def test_of_many_who_redeem_a_code_at_once_one_succeeds(anywhere: Tickler) -> None:
    links = links_of(anywhere)
    code = await links.create("u1")
    assert await links.find(code) == "u1"
    redeemed = await asyncio.gather(*(links_of(anywhere).redeem(code) for _ in range(8)))
    assert sorted(each or "" for each in redeemed) == [*[""] * 7, "u1"]
    assert await links.find(code) is None


async def test_a_code_expires(t: Tickler, clock: ManualClock) -> None:
    links = links_of(t)
    code = await links.create("u1", lifetime=60)
    clock.advance(59.999)
    assert await links.find(code) == "u1"
    clock.advance(0.001)
    assert (await links.find(code), await links.redeem(code)) == (None, None)


async def test_a_code_is_for_its_purpose_and_its_application(t: Tickler) -> None:
    links = links_of(t)
    code = await links.create("u1", purpose="invite")
    assert await links.redeem(code) is None
    assert await links_of(t, "other").redeem(code, purpose="invite") is None
    assert await links.redeem(code, purpose="invite") == "u1"


async def test_the_store_never_has_the_code(t: Tickler, clock: ManualClock) -> None:
    codes = [await links_of(t).create("u1") for _ in range(3)]
    kept = await t.store.records.list(web_kind("notes"), now_ms=clock.now_ms())
    text = json.dumps([[record.name, record.value] for record in kept])
    assert len(kept) == 3
    assert not any(code in text for code in codes)


@pytest.mark.parametrize("code", ["", "x", "é" * 43, "a" * 43, "a" * 42, "a" * 44, "a" * 43 + "\n", "../" + "a" * 40])
async def test_what_is_no_code_is_redeemed_by_nobody(t: Tickler, code: str) -> None:
    await links_of(t).create("u1")
    assert (await links_of(t).find(code), await links_of(t).redeem(code)) == (None, None)


async def test_what_cannot_be_kept_is_refused(t: Tickler) -> None:
    for subject in ("", "x" * 1_025):
        with pytest.raises(InvalidInput, match="subject"):
            await links_of(t).create(subject)
    for lifetime in (0, -1, 31 * 86_400):
        with pytest.raises(InvalidInput, match="lifetime"):
            await links_of(t).create("u1", lifetime=lifetime)
