"""Session cookies: forged, foreign, expired, ended here and in another process."""

from __future__ import annotations

import asyncio
import hmac
from typing import Any

import pytest

from tickler import InvalidInput, ManualClock, Tickler, connect
from tickler.records.kinds import web_kind
from tickler.web.sessions import CACHE_MS, MAX_LIFETIME_S, Session, Sessions, SessionSettings

LIFETIME_S = 3_600
KIND = web_kind("notes")


def sessions_of(t: Tickler, application: str = "notes", **settings: Any) -> Sessions:
    given = {"cookie": "notes_session", "lifetime_s": LIFETIME_S, **settings}
    return Sessions(t.store.records, t.clock, SessionSettings(**given), record_kind=web_kind(application))


@pytest.fixture
def sessions(t: Tickler) -> Sessions:
    return sessions_of(t)


async def cookie(sessions: Sessions, subject: str = "u1") -> str:
    return (await sessions.cookie_for(subject)).partition(";")[0]


async def found(sessions: Sessions, cookies: str) -> Session:
    session = await sessions.find(cookies)
    assert session is not None
    return session


def parts_of(cookie: str) -> tuple[str, str, str, str]:
    subject, id, until, mac = cookie.partition("=")[2].rsplit(".", 3)
    return subject, id, until, mac


@pytest.mark.parametrize("subject", ["u1", "a.b.c", "ada@example.org", "é/ü; x=y", "1.2.3", "%41", " ", "\n", "x" * 256])
async def test_a_cookie_names_its_subject_whatever_characters_that_has(sessions: Sessions, subject: str) -> None:
    text = await cookie(sessions, subject)
    assert text.isascii()
    assert text.isprintable()
    assert " " not in text
    assert (await found(sessions, f"a=b; {text}; c=d")).subject == subject


@pytest.mark.parametrize("subject", ["", "x" * 257, "é" * 129, "\ud800"])
async def test_a_subject_that_fits_no_cookie_is_refused(sessions: Sessions, subject: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 256 bytes"):
        await sessions.cookie_for(subject)


async def test_a_cookie_has_the_attributes_of_its_settings(t: Tickler) -> None:
    for settings, end in (
        ({}, "SameSite=Lax"),
        ({"same_site": "Strict"}, "SameSite=Strict"),
        ({"secure": True, "cookie": "__Host-notes"}, "SameSite=Lax; Secure"),
    ):
        text = await sessions_of(t, **settings).cookie_for("u1")
        assert text.endswith(f"; Path=/; Max-Age={LIFETIME_S}; HttpOnly; {end}")
        assert "Domain" not in text
        assert sessions_of(t, **settings).expired_cookie().split("; ")[2] == "Max-Age=0"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"cookie": "a b"}, "letters, digits"),
        ({"cookie": "a;b"}, "letters, digits"),
        ({"cookie": "__Host-notes"}, "over https only"),
        ({"cookie": "__Secure-notes"}, "over https only"),
        ({"lifetime_s": 0}, "not between"),
        ({"lifetime_s": MAX_LIFETIME_S + 1}, "not between"),
        ({"same_site": "None"}, "same_site"),
    ],
)
def test_settings_that_browsers_would_not_accept_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        SessionSettings(**settings)


async def test_a_cookie_that_was_changed_in_any_part_is_nobodys(sessions: Sessions) -> None:
    subject, id, until, mac = parts_of(await cookie(sessions))
    wrong_mac = mac[:-1] + ("0" if mac[-1] != "0" else "1")
    for value in (
        f"u2.{id}.{until}.{mac}",
        f"u1%00.{id}.{until}.{mac}",
        f"{subject}.{'0' * 32}.{until}.{mac}",
        f"{subject}.{id}.{int(until) + 1}.{mac}",
        f"{subject}.{id}.{until}.{wrong_mac}",
        f"{subject}.{id}.{until}.{mac.upper()}",
        f"{subject}.{id}.{until}.{'0' * 64}",
        f"{subject}.{id}.{until}.{mac[:-1]}",
        f"{subject}.{id}.{until}",
        f"{subject}.{id}.{until}.{mac}.{mac}",
        f".{id}.{until}.{mac}",
        f"{subject}.{id}.-1.{mac}",
        f"{subject}.{id}.{'9' * 13}.{mac}",
        f"{'x' * 5_000}.{id}.{until}.{mac}",
        "",
        "é",
    ):
        assert await sessions.find(f"notes_session={value}") is None, value


async def test_subject_and_id_cannot_be_moved_across_their_border(sessions: Sessions) -> None:
    """A dot within a subject must not make another subject of a signed text."""
    subject, id, until, mac = parts_of(await cookie(sessions, f"u1.{'a' * 32}.9999999999"))
    assert await sessions.find(f"notes_session={subject}.{id}.{until}.{mac}") is not None
    assert (await found(sessions, f"notes_session={subject}.{id}.{until}.{mac}")).subject != "u1"
    assert await sessions.find(f"notes_session=u1.{'a' * 32}.9999999999.{mac}") is None


async def test_the_cookie_of_another_application_is_nobodys_here(t: Tickler, sessions: Sessions) -> None:
    theirs = await cookie(sessions_of(t, "other"))
    assert await sessions_of(t, "other").find(theirs) is not None
    assert await sessions.find(theirs) is None
    renamed = await cookie(sessions_of(t, "notes", cookie="other_session"))
    assert await sessions.find(renamed) is None


async def test_signatures_are_compared_in_constant_time(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    text = await cookie(sessions)
    compared: list[bool] = []
    right = hmac.compare_digest

    def compare(a: Any, b: Any) -> bool:
        compared.append(right(a, b))
        return compared[-1]

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for each in (text, text[:-1] + ("0" if text[-1] != "0" else "1")):
        await sessions.find(each)
    assert compared == [True, False]


async def test_a_forged_cookie_costs_no_read(sessions: Sessions, t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    text = await cookie(sessions)

    async def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(t.store.records, "get", fail)
    assert await sessions.find(text[:-1] + ("0" if text[-1] != "0" else "1")) is None


async def test_every_sign_in_makes_another_id(sessions: Sessions) -> None:
    assert len({(await found(sessions, await cookie(sessions))).id for _ in range(50)}) == 50


async def test_a_session_expires_however_the_clock_is_moved(sessions: Sessions, clock: ManualClock) -> None:
    text = await cookie(sessions)
    clock.advance(LIFETIME_S - 0.001)
    assert await sessions.find(text) is not None
    clock.advance(0.001)
    assert await sessions.find(text) is None
    clock.advance(-2 * LIFETIME_S)
    assert (await found(sessions, text)).until_s * 1000 <= clock.now_ms() + 3 * LIFETIME_S * 1000
    clock.advance(2 * LIFETIME_S)
    assert await sessions.find(text) is None


async def test_who_signs_out_is_out_at_once_and_elsewhere_soon(sqlite_url: str, clock: ManualClock) -> None:
    async with connect(sqlite_url, clock=clock) as t, connect(sqlite_url, clock=clock) as elsewhere:
        here, there = sessions_of(t), sessions_of(elsewhere)
        text, another = await cookie(here), await cookie(here)
        session = await found(there, text)
        await here.end(session)
        assert await here.find(text) is None
        assert await there.find(text) is not None, "it is cached there"
        clock.advance(CACHE_MS / 1000)
        assert await there.find(text) is None
        assert await there.find(another) is not None


async def test_ending_all_sessions_of_a_subject_ends_those_before_and_none_after(sqlite_url: str, clock: ManualClock) -> None:
    async with connect(sqlite_url, clock=clock) as t, connect(sqlite_url, clock=clock) as elsewhere:
        here, there = sessions_of(t), sessions_of(elsewhere)
        before, theirs = [await cookie(each) for each in (here, there)], await cookie(here, "u2")
        for text in before:
            await found(there, text)
        await here.end_all("u1")
        after = await cookie(there)  # in the same millisecond
        assert [await here.find(text) is not None for text in (*before, after, theirs)] == [False, False, True, True]
        clock.advance(CACHE_MS / 1000)
        assert [await there.find(text) is not None for text in (*before, after, theirs)] == [False, False, True, True]
        await here.end_all("u1")
        assert [await here.find(text) is not None for text in (*before, after, theirs)] == [False, False, False, True]


async def test_what_the_store_keeps_of_ended_sessions_expires(t: Tickler, sessions: Sessions, clock: ManualClock) -> None:
    text, longest = await cookie(sessions), await cookie(sessions_of(t, lifetime_s=MAX_LIFETIME_S))
    await sessions.end(await found(sessions, text))
    await sessions.end_all("u1")
    clock.advance(LIFETIME_S)
    kept = [record.name for record in await t.store.records.list(KIND, now_ms=clock.now_ms())]
    assert [name[:8] for name in kept] == ["all-sign", "cookie-k"]
    clock.advance(MAX_LIFETIME_S - LIFETIME_S - 1)
    assert await sessions.find(longest) is None
    clock.advance(1)
    kept = [record.name for record in await t.store.records.list(KIND, now_ms=clock.now_ms())]
    assert kept == ["cookie-key"]
    assert await sessions.find(longest) is None


async def test_a_renewed_session_has_a_new_id_and_ends_the_old_one(sessions: Sessions, clock: ManualClock) -> None:
    text = await cookie(sessions)
    clock.advance(LIFETIME_S - 10)
    old = await found(sessions, text)
    renewed = await found(sessions, (await sessions.renew(old)).partition(";")[0])
    assert (renewed.subject, renewed.until_s) == ("u1", old.until_s + LIFETIME_S - 10)
    assert renewed.id != old.id
    assert await sessions.find(text) is None


async def test_a_session_that_was_ended_elsewhere_cannot_be_renewed_while_it_is_still_accepted(
    sqlite_url: str, clock: ManualClock
) -> None:
    async with connect(sqlite_url, clock=clock) as t, connect(sqlite_url, clock=clock) as elsewhere:
        here, there = sessions_of(t), sessions_of(elsewhere)
        signed_out, stolen = [await found(there, await cookie(here)) for _ in range(2)]
        await here.end(signed_out)
        assert await there.is_active(signed_out), "it is cached there"
        assert await there.renew(signed_out) == there.expired_cookie()
        await here.end_all("u1")
        assert await there.is_active(stolen), "it is cached there"
        renewed = (await there.renew(stolen)).partition(";")[0]
        for each in (here, there):
            assert await each.find(renewed) is None, "it began before the end of all"


async def test_two_requests_that_renew_one_session_both_get_one(sessions: Sessions) -> None:
    old = await found(sessions, await cookie(sessions))
    renewed = [(await sessions.renew(old)).partition(";")[0] for _ in range(2)]
    assert len({(await found(sessions, each)).id for each in renewed}) == 2
    await sessions.end(old)
    assert await sessions.renew(old) == sessions.expired_cookie()


async def test_on_each_store_sessions_begin_are_renewed_and_end_one_by_one_and_all_at_once(
    anywhere: Tickler, clock: ManualClock
) -> None:
    here, there = sessions_of(anywhere), sessions_of(anywhere)  # as two processes, each with its own cache
    first, second, other = [await cookie(here, subject) for subject in ("é/1", "é/1", "u2")]
    assert [(await found(there, each)).subject for each in (first, second, other)] == ["é/1", "é/1", "u2"]
    renewed = (await here.renew(await found(here, first))).partition(";")[0]
    await here.end(await found(here, second))
    clock.advance(CACHE_MS / 1000)
    for each in (here, there):
        assert [await each.find(text) is not None for text in (first, second, renewed, other)] == [False, False, True, True]
    await there.end_all("é/1")
    clock.advance(CACHE_MS / 1000)
    after = await cookie(here, "é/1")
    for each in (here, there):
        assert [await each.find(text) is not None for text in (first, renewed, other, after)] == [False, False, True, True]
    clock.advance(LIFETIME_S)
    await anywhere.records.prune()
    left = {record.name.partition("-")[0] for record in await anywhere.store.records.list(KIND, now_ms=clock.now_ms())}
    assert left == {"all", "cookie"}, "the key, and that all ended"


async def test_many_processes_that_start_at_once_agree_on_one_key(anywhere: Tickler) -> None:
    each = [sessions_of(anywhere) for _ in range(8)]
    cookies = await asyncio.gather(*(cookie(sessions) for sessions in each))
    for sessions in each:
        assert [(await found(sessions, text)).subject for text in cookies] == ["u1"] * 8


async def test_processes_of_one_store_share_the_key(sqlite_url: str, clock: ManualClock) -> None:
    async with connect(sqlite_url, clock=clock) as t, connect(sqlite_url, clock=clock) as other:
        assert await sessions_of(other).find(await cookie(sessions_of(t))) is not None
    async with connect("memory://", clock=clock) as t, connect("memory://", clock=clock) as other:
        assert await sessions_of(other).find(await cookie(sessions_of(t))) is None
