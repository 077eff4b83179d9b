"""Browsers: cookie sessions, forms, cross-site requests, DNS rebinding."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from http.cookies import SimpleCookie
from urllib.parse import urlencode

import pytest

from server.served import Answer, Api, serving
from server.surface import Route, every_route
from tickler import ManualClock, Schedule, Tickler
from tickler.server.middleware.sessions import COOKIE, LIFETIME_S
from tickler.server.pages.assets import ASSETS
from tickler.server.pages.time_format import sentence
from tickler.server.settings import ServerSettings

FORM = "application/x-www-form-urlencoded"


async def send(api: Api, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
    """Post a form as a browser does."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return await api("POST", path, urlencode(fields).encode(), headers={"content-type": FORM, **given})


async def form_token(api: Api, path: str = "/login", cookie: str = "") -> str:
    page = await api("GET", path, headers={"cookie": cookie, "accept": "text/html"})
    found = re.search(rb'name="form_token" value="([0-9a-f]{64})"', page.body)
    assert found, page
    return found[1].decode()


async def signed_in(api: Api, text: str) -> str:
    """Sign in, and return the cookie."""
    answer = await send(api, "/login", {"token": text, "form_token": await form_token(api)})
    assert (answer.status, answer.headers["location"]) == (303, "/?notice=in")
    return answer.headers["set-cookie"].partition(";")[0]


@pytest.fixture
async def text(t: Tickler) -> str:
    return (await t.tokens.create(["read", "write", "operate"], name="ada"))[1]


# Sessions.


async def test_a_cookie_is_for_this_page_alone_and_no_script_sees_it(t: Tickler, api: Api, text: str) -> None:
    answer = await send(api, "/login", {"token": text, "form_token": await form_token(api), "next": "/schedules"})
    assert answer.headers["location"] == "/schedules?notice=in"
    cookie = SimpleCookie(answer.headers["set-cookie"])[COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["max-age"]) == (True, "Strict", "/", str(LIFETIME_S))
    assert (cookie["secure"], cookie["domain"]) == ("", "")
    assert text not in answer.headers["set-cookie"]
    assert text.rpartition("_")[2] not in cookie.value
    async with serving(t, ServerSettings(secure_cookie=True)) as by_https:
        assert (
            "; Secure"
            in (await send(by_https, "/login", {"token": text, "form_token": await form_token(api)})).headers["set-cookie"]
        )


async def test_a_session_is_who_signed_in(t: Tickler, api: Api, text: str) -> None:
    cookie = await signed_in(api, text)
    assert (await api.get("/v1/stats", cookie=cookie)).status == 200
    assert (await api.get("/v1/stats", cookie=f"a=b; {cookie}; c=d")).status == 200
    assert (await api.get("/", cookie=cookie)).status == 200
    await api.put("/v1/schedules/u1/a", {"when": "@daily"}, cookie=cookie)
    assert (await t.audit.list()).items[0].by == "ada"


async def test_a_session_of_an_owner_sees_that_owner_alone(t: Tickler, api: Api) -> None:
    await t.schedules.put(Schedule(owner="rival", key="secret", when="@daily"))
    _, text = await t.tokens.create(["read", "write"], owner="mine")
    cookie = await signed_in(api, text)
    assert (await api.get("/v1/schedules", cookie=cookie)).json["items"] == []
    for path in ("/", "/schedules", "/schedules?owner=rival", "/failed", "/audit"):
        page = await api("GET", path, headers={"cookie": cookie, "accept": "text/html"})
        assert page.status == 200
        assert b"secret" not in page.body
    for path, status in (
        ("/schedules/rival/secret", 404),
        ("/schedules/rival/secret/edit", 404),
        ("/doctor", 403),
        ("/forecast", 403),
    ):
        assert (await api.get(path, cookie=cookie)).status == status
    fields = {"form_token": await form_token(api, "/", cookie), "owner": "rival", "key": "new", "when": "@daily", "kind": "none"}
    assert (await send(api, "/new-schedule", fields, cookie=cookie)).status == 422
    own = {**fields, "owner": "mine", "kind": "python", "to": "echo"}
    assert (await send(api, "/new-schedule", own, cookie=cookie)).status == 422
    assert [each.key for each in (await t.schedules.list()).items] == ["secret"]


async def test_a_cookie_that_was_tampered_with_is_nobodys(t: Tickler, api: Api, text: str, clock: ManualClock) -> None:
    other, _ = await t.tokens.create(["read"])
    cookie = await signed_in(api, text)
    id, session, until, mac = cookie.partition("=")[2].split(".")
    tampered = [
        f"{other.id}.{session}.{until}.{mac}",
        f"{id}.{'0' * 32}.{until}.{mac}",
        f"{id}.{until}.{mac}",
        f"{id}.{session}.{int(until) + 1}.{mac}",
        f"{id}.{session}.{until}.{mac[:-1]}{'0' if mac[-1] != '0' else '1'}",
        f"{id}.{session}.{until}.{'0' * 64}",
        f"{id}.{session}.{until}.",
        f"{id}.{session}.{until}",
        f"{id}.{session}.-1.{mac}",
        f"{id}.{session}.{until}.{mac}.{mac}",
        f"{id}.{session}.{'9' * 400}.{mac}",
        f'"{id}.{session}.{until}.{mac.upper()}"',
        "",
        "é",
        "x" * 4_000,
    ]
    for value in tampered:
        refused = await api.get("/v1/stats", cookie=f"{COOKIE}={value}")
        assert refused.status == 401, value
    page = await api("GET", "/schedules", headers={"cookie": f"{COOKIE}={tampered[0]}", "accept": "text/html"})
    assert (page.status, page.headers["location"]) == (303, "/login?next=%2Fschedules")


async def test_a_session_ends_with_its_time_and_with_its_token(t: Tickler, api: Api, text: str, clock: ManualClock) -> None:
    made, short = await t.tokens.create(["read"])
    first, second = await signed_in(api, text), await signed_in(api, short)
    await t.tokens.revoke(made.id)
    assert (await api.get("/v1/stats", cookie=second)).status == 401
    clock.advance(LIFETIME_S - 1)
    assert (await api.get("/v1/stats", cookie=first)).status == 200
    clock.advance(1)
    assert (await api.get("/v1/stats", cookie=first)).status == 401


async def test_signing_out_takes_the_cookie_away(api: Api, text: str) -> None:
    cookie = await signed_in(api, text)
    answer = await send(api, "/logout", {"form_token": await form_token(api, "/", cookie)}, cookie=cookie)
    assert answer.status == 303
    gone = SimpleCookie(answer.headers["set-cookie"])[COOKIE]
    assert (gone.value, gone["max-age"], gone["httponly"], gone["samesite"]) == ("", "0", True, "Strict")


async def test_signing_out_ends_the_session_wherever_its_cookie_is(t: Tickler, api: Api, text: str, clock: ManualClock) -> None:
    cookie, another = await signed_in(api, text), await signed_in(api, text)
    async with serving(t) as elsewhere:  # another process, as it remembers by itself
        assert (await elsewhere.get("/v1/stats", cookie=cookie)).status == 200
        await send(api, "/logout", {"form_token": await form_token(api, "/", cookie)}, cookie=cookie)
        assert (await api.get("/v1/stats", cookie=cookie)).status == 401
        clock.advance(5)
        for served in (api, elsewhere):
            assert (await served.get("/v1/stats", cookie=cookie)).status == 401
            assert (await served.get("/v1/stats", cookie=another)).status == 200
    clock.advance(LIFETIME_S)
    kept = await t.store.records.list("server", now_ms=clock.now_ms())
    assert {record.name for record in kept} == {"closed", "cookie-key"}, "it is kept no longer than the cookie lasts"


async def test_signing_in_again_ends_the_session_before(api: Api, text: str) -> None:
    first = await signed_in(api, text)
    fields = {"token": text, "form_token": await form_token(api, "/", first)}
    assert (await send(api, "/login", fields, cookie=first)).status == 303
    assert (await api.get("/v1/stats", cookie=first)).status == 401


async def test_sessions_of_one_token_do_not_share_their_forms(api: Api, text: str) -> None:
    cookie, another = await signed_in(api, text), await signed_in(api, text)
    theirs = await form_token(api, "/", another)
    assert (await send(api, "/logout", {"form_token": theirs}, cookie=cookie)).status == 403
    assert (await api.get("/v1/stats", cookie=cookie)).status == 200


@pytest.mark.parametrize(
    "others",
    [
        '{"a":1}=x',
        "a[0]=b",
        "é=ü",
        "=",
        "a b=c d",
        '"',
        "x",
        "expires=1; path",
        f"x{COOKIE}=1",
        f"{COOKIE}=stale",
        f"{COOKIE}",
        "\t",
    ],
)
async def test_cookies_of_other_apps_do_no_harm(api: Api, text: str, others: str) -> None:
    cookie = await signed_in(api, text)
    for sent in (f"{others}; {cookie}", f"{cookie};{others}", f"a=b;{others};;{cookie} ;c=d"):
        assert (await api.get("/v1/stats", cookie=sent)).status == 200, sent


async def test_what_is_no_token_signs_nobody_in(api: Api, text: str) -> None:
    for wrong in ("", "x", text[:-1], text + "0", "tk_" + "é" * 10):
        answer = await send(api, "/login", {"token": wrong, "form_token": await form_token(api)})
        assert answer.status == 401
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("asked_for", "goes_to"),
    [
        ("https://evil.example/", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
        ("/schedules/é/a%2Fb", "/schedules/%C3%A9/a%2Fb"),
        ("/a\r\nset-cookie: x=y", "/a%0D%0Aset-cookie%3A%20x%3Dy"),
        ("/日本", "/%E6%97%A5%E6%9C%AC"),
    ],
)
async def test_signing_in_leads_to_this_page_and_nowhere_else(api: Api, text: str, asked_for: str, goes_to: str) -> None:
    answer = await send(api, "/login", {"token": text, "form_token": await form_token(api), "next": asked_for})
    assert answer.headers["location"] == f"{goes_to}?notice=in"


async def test_who_has_to_sign_in_again_gets_to_what_they_looked_at(t: Tickler, api: Api, text: str) -> None:
    await t.schedules.put(Schedule(owner="u1", key="a?b/c&d", when="@daily"))
    for path in ("/schedules?owner=u1&key=a%26b", "/schedules/u1/a%3Fb%2Fc%26d", "/schedules"):
        asked = await api("GET", f"{path}{'&' if '?' in path else '?'}notice=put", headers={"accept": "text/html"})
        login = asked.headers["location"]
        assert (asked.status, login.startswith("/login?next=")) == (303, True)
        page = (await api("GET", login, headers={"accept": "text/html"})).body.decode()
        found = re.search(r'name="next" value="([^"]*)"', page)
        assert found is not None
        given = {"token": text, "form_token": await form_token(api), "next": html.unescape(found[1])}
        where = (await send(api, "/login", given)).headers["location"]
        assert where == f"{path}{'&' if '?' in path else '?'}notice=in"
        assert (await api("GET", where, headers={"cookie": await signed_in(api, text), "accept": "text/html"})).status == 200


async def test_a_form_sent_after_the_session_has_ended_is_not_looked_at_as_a_page(api: Api, text: str) -> None:
    answer = await send(api, "/schedules/u1/digest/pause", {}, accept="text/html")
    assert (answer.status, answer.headers["location"]) == (303, "/login")


# Forms.


@pytest.mark.parametrize(
    "route",
    [each for each in every_route() if each.method == "POST" and not each.is_api],
    ids=lambda route: route.path,
)
async def test_every_form_of_the_page_carries_a_token_that_is_its_sessions_own(
    t: Tickler, api: Api, text: str, route: Route
) -> None:
    await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily"))
    _, others = await t.tokens.create(["read", "write", "operate"])
    cookie, another = await signed_in(api, text), await signed_in(api, others)
    right = await form_token(api, "/", cookie)
    for wrong in ("", "0" * 64, await form_token(api), await form_token(api, "/", another), right.upper(), "é"):
        refused = await send(api, route.at(), {"form_token": wrong, "token": text}, cookie=cookie)
        assert refused.status == 403, wrong
    assert (await send(api, route.at(), {"form_token": right}, cookie=cookie)).status in (200, 303, 401, 404, 422)
    assert (
        await api("POST", route.at(), b'{"form_token": 1}', headers={"cookie": cookie, "content-type": "application/json"})
    ).status == 415


@pytest.mark.parametrize("body", [b"form_token=%FF", b"form_token=%ED%A0%80", b"\xff", b"&" * 200, b"a=1&" * 101, b"%", b""])
async def test_a_form_that_does_not_read_is_refused(api: Api, body: bytes) -> None:
    for path in ("/login", "/new-schedule", "/failed/retry-all"):
        assert (await api("POST", path, body, headers={"content-type": FORM})).status in (400, 403)


async def test_without_tokens_forms_are_protected_too(t: Tickler, api: Api) -> None:
    fields = {"owner": "u1", "key": "a", "when": "@daily", "kind": "none", "enabled": "on"}
    assert (await send(api, "/new-schedule", fields)).status == 403
    assert (await send(api, "/new-schedule", {**fields, "form_token": await form_token(api)})).status == 303
    assert await t.schedules.get("u1", "a") is not None


# Other sites.

FOREIGN: list[dict[str, str]] = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://localhost"},
    {"origin": "http://["},
    {"origin": "http://127.0.0.1.evil.example"},
    {"origin": ""},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "nonsense"},
    {"origin": "https://evil.example", "sec-fetch-site": "none"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/schedules/u1/a"),
        ("DELETE", "/v1/schedules/u1/a"),
        ("POST", "/v1/schedules/u1/a/trigger"),
        ("POST", "/v1/tick"),
        ("GET", "/v1/tick"),
        ("GET", "/v1/tick?budget_ms=5"),
        ("GET", "/v1/%74ick"),
        ("POST", "/v1/schedules:import"),
        ("POST", "/login"),
        ("POST", "/new-schedule"),
    ],
)
async def test_what_another_site_makes_a_browser_send_is_refused(
    t: Tickler, api: Api, headers: dict[str, str], method: str, path: str
) -> None:
    body = None if method == "GET" else b"{}"
    refused = await api(method, path, body, headers={"content-type": "text/plain", **headers} if body else headers)
    assert (refused.status, refused.is_problem) == (403, True)
    assert (await t.audit.list()).items == []


@pytest.mark.parametrize("path", ["/v1/tick/", "//v1/tick", "/v1//tick", "/./v1/tick", "/v1/x/../tick", "/v1%2Ftick", "/V1/TICK"])
async def test_no_other_way_of_writing_it_leads_to_a_beat(api: Api, path: str) -> None:
    answer = await api("GET", path, headers={"origin": "https://evil.example", "sec-fetch-site": "cross-site"})
    assert answer.status == 404


async def test_the_page_itself_and_programs_may_write(api: Api) -> None:
    here = f"127.0.0.1:{api.port}"
    for headers in (
        {"origin": f"http://{here}", "sec-fetch-site": "same-origin"},
        {"origin": f"http://{here}"},
        {"origin": f"HTTP://{here}"},
        {"origin": f"https://{here}"},
        {"sec-fetch-site": "none"},
        {},
    ):
        assert (await api("POST", "/v1/tick", headers=headers)).status == 200


async def test_other_sites_may_link_here_and_read_nothing(api: Api) -> None:
    answer = await api("GET", "/v1/schedules", headers={"origin": "https://evil.example", "sec-fetch-site": "cross-site"})
    assert answer.status == 200
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    preflight = await api(
        "OPTIONS", "/v1/schedules", headers={"origin": "https://evil.example", "access-control-request-method": "PUT"}
    )
    assert not [name for name in preflight.headers if name.lower().startswith("access-control-")]


# Names.


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "[::1].evil.example",
        "localhost:80:80",
        "\xff",
        "a" * 1_000,
    ],
)
@pytest.mark.parametrize("path", ["/", "/v1/schedules", "/metrics", "/static/style.css"])
async def test_a_name_that_somebody_elses_dns_points_here_is_no_way_in(api: Api, host: str, path: str) -> None:
    answer = await api.bytes_for(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode("latin-1"))
    assert b" 421 " in answer.split(b"\r\n", 1)[0]
    assert b"application/problem+json" in answer


async def test_a_request_without_a_name_is_no_way_in_either(api: Api) -> None:
    assert b" 421 " in (await api.bytes_for(b"GET /v1/schedules HTTP/1.0\r\n\r\n")).split(b"\r\n", 1)[0]


@pytest.mark.parametrize("host", ["evil.example", "", "10.1.2.3:8321", "tickler"])
@pytest.mark.parametrize("settings", [ServerSettings(), ServerSettings(hosts=("tickler.example.org",), host="0.0.0.0")])
async def test_whoever_watches_over_it_may_call_it_as_they_like(t: Tickler, settings: ServerSettings, host: str) -> None:
    async with serving(t, settings) as api:
        for path in ("/health/live", "/health/ready"):
            answer = await api.bytes_for(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
            assert b" 200 " in answer.split(b"\r\n", 1)[0]


@pytest.mark.parametrize(
    ("settings", "good", "bad"),
    [
        (ServerSettings(host="127.0.0.2"), ["127.0.0.2", "127.0.0.2:8321", "localhost"], ["127.0.0.3"]),
        (ServerSettings(host="[::1]"), ["[::1]:8321", "[::1]"], ["::1"]),
        (ServerSettings(host="0:0:0:0:0:0:0:1"), ["[::1]", "[0:0:0:0:0:0:0:1]:80"], ["1"]),
        (ServerSettings(host="10.0.0.7", hosts=("a.example",)), ["10.0.0.7:8321", "a.example"], ["10.0.0.8", "localhost"]),
        (ServerSettings(host="FD00::7", hosts=("a.example",)), ["[fd00::7]:8321", "a.example"], ["fd00::7", "[fd00::8]"]),
        (ServerSettings(host="Box.lan", hosts=("a.example",)), ["box.lan", "BOX.LAN:1", "a.example"], ["box", "localhost"]),
        (ServerSettings(host="0.0.0.0", hosts=("a.example",)), ["a.example"], ["0.0.0.0", "127.0.0.1"]),
        (ServerSettings(host="::", hosts=("a.example",)), ["a.example"], ["[::]", "[::1]"]),
    ],
    ids=lambda value: value.host if isinstance(value, ServerSettings) else "",
)
async def test_it_may_be_called_by_the_address_it_listens_on(
    t: Tickler, settings: ServerSettings, good: list[str], bad: list[str]
) -> None:
    async with serving(t, settings) as api:
        for host, status in [*((host, 200) for host in good), *((host, 421) for host in bad)]:
            assert (await api("GET", "/login", headers={"host": host})).status == status, host


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8321", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8321"])
async def test_this_machine_has_its_usual_names(api: Api, host: str) -> None:
    assert (await api("GET", "/v1/schedules", headers={"host": host})).status == 200


async def test_an_operator_names_others(t: Tickler) -> None:
    text = (await t.tokens.create(["read"]))[1]
    async with serving(t, ServerSettings(hosts=("Tickler.example.org",))) as api:
        for host, status in (
            ("tickler.example.org", 200),
            ("TICKLER.example.org:443", 200),
            ("localhost", 200),
            ("x.example.org", 421),
        ):
            assert (await api.bearing(text)("GET", "/v1/schedules", headers={"host": host})).status == status
    async with serving(t, ServerSettings(host="0.0.0.0")) as open_to_all:
        answer = await open_to_all.bearing(text)(
            "GET", "/v1/schedules", headers={"host": "anything.example", "authorization": f"Bearer {text}"}
        )
        assert answer.status == 200


# What a browser may do with what it gets.


@pytest.mark.parametrize(
    "path", ["/", "/login", "/v1/schedules", "/v1/nothing", "/static/style.css", "/v1/schedules?x=1", "/schedules/u1/no"]
)
async def test_nobody_frames_a_page_or_puts_scripts_into_it(api: Api, path: str) -> None:
    headers = (await api("GET", path, headers={"accept": "text/html"})).headers
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    policy = dict(rule.strip().partition(" ")[::2] for rule in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]


def test_a_sentence_renders_its_instants_as_times_and_what_users_wrote_as_text() -> None:
    written = "<b>&"
    text = f"{written} of 2030-11-20 13:00:00.500 Europe/Berlin (12:00 UTC): {written} `{written} 2030-11-20 13:00:00 UTC`"
    shown = str(sentence(text, now_ms=0))
    assert shown == (
        '&lt;b&gt;&amp; of <time datetime="2030-11-20T12:00:00.500+00:00" title="2030-11-20T12:00:00.500+00:00"'
        ' data-ms="1921406400500">Wed 20 Nov 2030, 12:00 <small>UTC</small></time>: &lt;b&gt;&amp;'
        " <code>&lt;b&gt;&amp; 2030-11-20 13:00:00 UTC</code>"
    )


async def test_pages_are_not_kept_by_browsers(api: Api) -> None:
    for path in ("/", "/schedules", "/login"):
        assert (await api("GET", path, headers={"accept": "text/html"})).headers["cache-control"] == "no-store"


async def test_files_are_kept_for_ever_under_the_address_of_their_content_only(api: Api) -> None:
    url = ASSETS.url("style.css")
    for path, kept in ((url, "public, max-age=31536000, immutable"), (f"{url}0", "no-cache"), ("/static/style.css", "no-cache")):
        assert (await api.get(path)).headers["cache-control"] == kept
