"""Forms, and requests that another site makes a browser send."""

from __future__ import annotations

import itertools
from urllib.parse import urlencode

import pytest

from tickler import Tickler
from tickler.records.kinds import web_kind
from tickler.web import Forms, Refused
from tickler.web.cross_site import is_same_origin
from tickler.web.sessions import Sessions, SessionSettings

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def forms(t: Tickler) -> Forms:
    return Forms(t.store.records, t.clock, record_kind=web_kind("notes"))


async def status_of(forms: Forms, body: bytes, client: str = "session", kind: str = FORM) -> int:
    with pytest.raises(Refused) as refused:
        await forms.read(kind, body, client)
    return refused.value.status


async def test_a_form_with_the_token_of_its_session_is_read(forms: Forms) -> None:
    token = await forms.token("session")
    body = urlencode([("day", "mon"), ("day", "tue"), ("note", "é&=+"), ("empty", ""), ("form_token", token)]).encode()
    fields = await forms.read(f"{FORM}; charset=utf-8", body, "session")
    assert fields == {"day": "tue", "note": "é&=+", "empty": ""}
    assert (fields.all("day"), fields.all("nothing")) == (["mon", "tue"], [])


async def test_a_form_of_one_process_is_read_by_another_on_each_store(anywhere: Tickler) -> None:
    here, there = (Forms(anywhere.store.records, anywhere.clock, record_kind=web_kind("notes")) for _ in range(2))
    body = urlencode({"note": "é&=+", "form_token": await here.token("session")}).encode()
    assert await there.read(FORM, body, "session") == {"note": "é&=+"}
    assert await status_of(there, body, "another") == 403


async def test_tokens_of_other_sessions_and_applications_are_refused(t: Tickler, forms: Forms) -> None:
    elsewhere = Forms(t.store.records, t.clock, record_kind=web_kind("other"))
    right = await forms.token("session")
    for wrong in (
        await forms.token("another"),
        await forms.token(""),
        await elsewhere.token("session"),
        right[:-1],
        right.upper(),
        "",
        "é",
    ):
        assert await status_of(forms, urlencode({"form_token": wrong}).encode()) == 403, wrong
    assert await forms.is_token(right, "session")
    assert not await forms.is_token(right, "another")


async def test_a_signature_of_a_session_is_no_token_of_a_form(web_cookie: str, forms: Forms) -> None:
    text, _, mac = web_cookie.partition("=")[2].rpartition(".")
    assert await status_of(forms, urlencode({"form_token": mac}).encode(), text) == 403


@pytest.fixture
async def web_cookie(t: Tickler) -> str:
    sessions = Sessions(t.store.records, t.clock, SessionSettings(), record_kind=web_kind("notes"))
    return (await sessions.cookie_for("u1")).partition(";")[0]


async def test_two_tokens_in_one_form_are_refused(forms: Forms) -> None:
    right = await forms.token("session")
    assert await status_of(forms, urlencode([("form_token", "x"), ("form_token", right)]).encode()) == 403
    assert await status_of(forms, urlencode([("form_token", right), ("form_token", right)]).encode()) == 403


@pytest.mark.parametrize("body", [b"form_token=%FF", b"\xff", b"a=1&" * 101, b"&" * 200])
async def test_a_body_that_is_no_form_is_refused(forms: Forms, body: bytes) -> None:
    assert await status_of(forms, body) in (400, 403)


@pytest.mark.parametrize("kind", ["", "text/plain", "application/json", "multipart/form-data; boundary=x", "x" + FORM])
async def test_another_kind_of_body_is_refused_before_it_is_read(forms: Forms, kind: str) -> None:
    body = urlencode({"form_token": await forms.token("session")}).encode()
    assert await status_of(forms, body, kind=kind) == 415


# Every combination of what browsers send.

SITES = [None, "none", "same-origin", "same-site", "cross-site", "", "nonsense", "SAME-ORIGIN"]
ORIGINS = [
    (None, True),
    ("http://localhost:8000", True),
    ("https://localhost:8000", True),
    ("HTTPS://LOCALHOST:8000", True),
    ("http://localhost", False),
    ("http://localhost:8001", False),
    ("http://localhost:8000.evil.example", False),
    ("http://evil.example", False),
    ("ftp://localhost:8000", False),
    ("null", False),
    ("", False),
    ("http://[", False),
]


def test_only_requests_of_the_page_itself_and_of_programs_change_anything() -> None:
    for site, (origin, is_own) in itertools.product(SITES, ORIGINS):
        headers = {"host": "localhost:8000"}
        headers |= {} if site is None else {"sec-fetch-site": site}
        headers |= {} if origin is None else {"origin": origin}
        assert is_same_origin(headers) == (site in (None, "none", "same-origin") and is_own), headers


def test_over_https_an_origin_without_it_is_another_one() -> None:
    headers = {"host": "example.org", "origin": "http://example.org"}
    assert is_same_origin(headers)
    assert not is_same_origin(headers, ("https",))
    assert is_same_origin({**headers, "origin": "https://example.org"}, ("https",))
