"""The middleware around an application: who is let in, and what a refusal looks like."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from tickler import InvalidInput, ManualClock, StoreUnavailable, Tickler, connect
from tickler.web import BearerToken, Refused, Web, WebSettings
from tickler.web.asgi import App, Receive, Send

from .asking import ask
from .conftest import make_web

HTML = {"accept": "text/html,*/*"}
SAME = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}


class NoteToken(BearerToken, frozen=True, kw_only=True):
    """A token of a user."""

    scopes: tuple[Literal["read", "write"], ...]
    user: str


def answering(web: Web[str]) -> App:
    """Return an app that answers with the user, after it has read the body."""

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        body = b""
        while scope["type"] == "http":
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        if scope["path"] == "/write":
            web.visitor(scope).require("write")
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        text = f"{web.visitor(scope).user} {len(body)}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-frame-options", b"SAMEORIGIN")]})
        await send({"type": "http.response.body", "body": text})

    return app


def protected(t: Tickler, users: Mapping[str, str], **settings: Any) -> tuple[Web[str], App]:
    async def find(subject: str) -> str | None:
        return users.get(subject)

    web = Web(t, "notes", user=find, settings=WebSettings(**settings))
    return web, web.protect(answering(web))


async def signed_in(web: Web[str], subject: str = "u1") -> dict[str, str]:
    return {"cookie": (await web.sessions.cookie_for(subject)).partition(";")[0]}


async def test_a_session_is_its_user_and_nobody_else_is(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users)
    assert (await ask(app, headers=await signed_in(web))).body == b"Ada 0"
    assert (await ask(app, headers={"cookie": "notes_session=x.y"})).body == b"None 0"
    assert (await ask(app)).body == b"None 0"
    theirs = make_web(t, "other", users)
    for cookie in ((await signed_in(theirs))["cookie"], (await signed_in(theirs))["cookie"].replace("other_", "notes_")):
        assert (await ask(app, headers={"cookie": cookie})).body == b"None 0"


async def test_cookies_may_come_in_a_header_each_as_over_http_2(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users)
    own = (await signed_in(web))["cookie"]
    assert (await ask(app, headers=[("cookie", "theme=dark"), ("cookie", own), ("cookie", "a=b")])).body == b"Ada 0"


async def test_a_user_who_is_gone_is_nobody_and_the_session_ends(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users)
    cookie = await signed_in(web)
    del users["u1"]
    assert (await ask(app, headers=cookie)).body == b"None 0"
    users["u1"] = "another Ada"
    assert (await ask(app, headers=cookie)).body == b"None 0"
    assert (await ask(app, headers=await signed_in(web))).body == b"another Ada 0"


async def test_signing_in_ends_the_session_before_and_changes_its_id(t: Tickler, users: dict[str, str]) -> None:
    web, _ = protected(t, users)
    seen: list[str] = []

    async def sign_in(scope: Any, receive: Receive, send: Send) -> None:
        seen.append(await web.sign_in(scope, "u2"))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    before = await signed_in(web)
    await ask(web.protect(sign_in), "POST", headers={**before, **SAME})
    assert await web.sessions.find(before["cookie"]) is None, "an id that somebody planted is worth nothing"
    after = await web.sessions.find(seen[0].partition(";")[0])
    assert after is not None
    assert after.subject == "u2"


async def test_who_signs_out_is_out_and_loses_the_cookie(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users)
    cookie = await signed_in(web)
    gone: list[str] = []

    async def sign_out(scope: Any, receive: Receive, send: Send) -> None:
        gone.append(await web.sign_out(scope))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    await ask(web.protect(sign_out), "POST", headers={**cookie, **SAME})
    assert gone[0].startswith("notes_session=; ")
    assert (await ask(app, headers=cookie)).body == b"None 0"


async def test_tokens_are_their_users_and_have_their_scopes(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users)
    tokens = web.tokens(NoteToken, prefix="nt", subject=lambda token: token.user)
    _, reads = await tokens.create(NoteToken(scopes=("read",), user="u1"))
    _, writes = await tokens.create(NoteToken(scopes=("write",), user="u2"))
    assert (await ask(app, headers={"authorization": f"Bearer {reads}"})).body == b"Ada 0"
    assert (await ask(app, "POST", "/write", {"authorization": f"bearer {writes}"})).body == b"Bob 0"
    lacking = await ask(app, "POST", "/write", {"authorization": f"Bearer {reads}"})
    assert (lacking.status, "lacks the scope 'write'" in lacking.problem["detail"]) == (403, True)
    assert (await ask(app, "POST", "/write", {**await signed_in(web), **SAME})).status == 200, "sessions have all scopes"
    for wrong in ("", "Bearer", "Bearer x", f"Basic {reads}", f"Bearer {reads[:-1]}", "Bearer \xff", reads):
        refused = await ask(app, headers={"authorization": wrong, **await signed_in(web)})
        assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Bearer error="invalid_token"'), wrong
    del users["u1"]
    assert (await ask(app, headers={"authorization": f"Bearer {reads}"})).status == 401
    with pytest.raises(InvalidInput, match="is taken"):
        web.tokens(NoteToken, prefix="nt")


SECRET = "what only the cron knows"


@pytest.mark.parametrize(
    ("secret", "given", "status"),
    [
        (SECRET, f"Bearer {SECRET}", 200),
        (SECRET, f"bearer  {SECRET} ", 200),
        (SECRET, f"Basic {SECRET}", 401),
        (SECRET, SECRET, 401),
        (SECRET, "Bearer é", 401),
        (SECRET, "Bearer", 401),
        (SECRET, None, 401),
        ("", "Bearer ", 401),
        ("", "Bearer", 401),
    ],
)
async def test_a_path_with_a_secret_lets_in_whoever_sends_it(t: Tickler, secret: str, given: str | None, status: int) -> None:
    async def find(subject: str) -> str | None:
        return subject

    web = Web(t, "notes", user=find, settings=WebSettings(foreign=("/tick",)))

    async def tick(scope: Any, receive: Receive, send: Send) -> None:
        web.check_secret(scope, secret, "NOTES_TICK_SECRET")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    answer = await ask(web.protect(tick), "POST", "/tick", {} if given is None else {"authorization": given})
    assert answer.status == status
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "NOTES_TICK_SECRET" in answer.problem["detail"]


async def test_wrong_tokens_are_slowed_down_by_address_and_right_ones_are_not(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users, proxies=("10.0.0.0/8",))
    _, text = await web.tokens(NoteToken, prefix="nt", subject=lambda token: token.user).create(
        NoteToken(scopes=("read",), user="u1")
    )
    statuses = [(await ask(app, headers={"authorization": "Bearer x"})).status for _ in range(31)]
    assert statuses == [401] * 30 + [429]
    assert (await ask(app, headers={"authorization": f"Bearer {text}"})).status == 200
    spoofed = {"authorization": "Bearer x", "x-forwarded-for": "192.0.2.1"}
    assert (await ask(app, headers=spoofed)).status == 429, "whoever is no proxy cannot say to be another"
    assert (await ask(app, headers=spoofed, client="10.0.0.1")).status == 401


async def test_a_limit_that_is_asked_first_stops_guesses_also_the_right_one(t: Tickler, users: dict[str, str]) -> None:
    web, _ = protected(t, users)

    async def sign_in(scope: Any, receive: Receive, send: Send) -> None:
        web.count_failure(scope)
        status = 204 if scope["path"] == "/right" else 403
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body"})

    app = web.protect(sign_in)
    assert [(await ask(app, path="/wrong")).status for _ in range(30)] == [403] * 30
    assert (await ask(app, path="/right")).status == 429
    assert (await ask(app, path="/right", client="203.0.113.8")).status == 204


FOREIGN = [
    {"origin": "https://evil.example"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "null"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_another_sites_write_is_refused_but_for_declared_paths(
    t: Tickler, users: dict[str, str], headers: dict[str, str]
) -> None:
    web, app = protected(t, users, foreign=("/hooks",))
    cookie = await signed_in(web)
    for method in ("POST", "PUT", "PATCH", "DELETE", "post", "X"):
        assert (await ask(app, method, headers={**headers, **cookie})).status == 403
    assert (await ask(app, headers={**headers, **cookie})).body == b"Ada 0", "others may link here"
    assert (await ask(app, "POST", "/hooks/github", {**headers, **cookie})).body == b"None 0", (
        "a session counts for nothing there"
    )
    for path in ("/hooks-settings", "/x/hooks", "//hooks", "/HOOKS"):
        assert (await ask(app, "POST", path, headers)).status == 403


async def test_a_declared_path_leaves_foreign_authorization_to_the_application(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users, foreign=("/tick",))
    _, text = await web.tokens(NoteToken, prefix="nt", subject=lambda token: token.user).create(
        NoteToken(scopes=("read",), user="u1")
    )
    for sent in ("Bearer a-secret-of-cron", f"Bearer {text}"):
        assert (await ask(app, "POST", "/tick", {"authorization": sent})).body == b"None 0"


async def test_a_websocket_of_another_site_is_closed_before_it_opens(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users)
    cookie = await signed_in(web)
    for headers, said in (({"origin": "https://evil.example"}, b"websocket.close"), (SAME, b"websocket.accept")):
        assert (await ask(app, headers={**headers, **cookie}, kind="websocket")).body == said
    assert (await ask(app, headers=SAME, kind="websocket", host="evil.example")).body == b"websocket.close"


async def test_a_websocket_is_closed_with_a_reason_that_fits_its_frame(t: Tickler, users: dict[str, str]) -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        raise Refused(403, "ü" * 200)

    async def send(message: Any) -> None:
        sent.append(message)

    web, _ = protected(t, users)
    scope = {"type": "websocket", "path": "/", "query_string": b"", "headers": [(b"host", b"localhost")], "client": None}
    await web.protect(app)(scope, lambda: asyncio.sleep(0), send)
    assert (sent[0]["type"], sent[0]["reason"]) == ("websocket.close", "ü" * 61), "123 bytes, in whole letters"


async def test_what_is_no_request_passes(t: Tickler, users: dict[str, str]) -> None:
    passed: list[str] = []

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        passed.append(scope["type"])

    web, _ = protected(t, users)
    await web.protect(app)({"type": "lifespan"}, lambda: asyncio.sleep(0), lambda message: asyncio.sleep(0))
    assert passed == ["lifespan"]


async def test_a_foreign_host_name_is_refused_whatever_is_asked_for(t: Tickler, users: dict[str, str]) -> None:
    _, app = protected(t, users, hosts=("*",))
    assert (await ask(app, host="anything.example")).status == 200
    _, app = protected(t, users, hosts=("notes.example.org",), foreign=("/hooks",))
    for path in ("/", "/hooks", "/static/x.css"):
        assert (await ask(app, path=path)).problem["status"] == 421
        assert (await ask(app, path=path, host="notes.example.org:443")).status == 200


async def test_whoever_watches_over_it_may_call_it_by_any_name(
    t: Tickler, users: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    web, app = protected(t, users, probes=("/health",))
    cookie = await signed_in(web)
    for path, status in (("/health", 200), ("/health/ready", 200), ("/healthy", 421), ("/", 421)):
        got = await ask(app, path=path, headers=cookie, host="10.1.2.3:8000")
        assert (got.status, b"Ada" in got.body) == (status, False), path


async def test_security_headers_are_on_every_answer_and_an_applications_own_win(t: Tickler, users: dict[str, str]) -> None:
    _, app = protected(t, users, policy="default-src 'self'", hsts_s=60)
    for got in (await ask(app), await ask(app, host="evil.example"), await ask(app, "POST", headers=FOREIGN[0])):
        assert got.headers["content-security-policy"] == "default-src 'self'"
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["strict-transport-security"] == "max-age=60"
    assert (await ask(app)).headers["x-frame-options"] == "SAMEORIGIN"


async def test_what_a_user_sees_is_kept_by_no_cache(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users)
    assert (await ask(app, headers=await signed_in(web))).headers["cache-control"] == "no-store"
    assert "cache-control" not in (await ask(app)).headers


async def test_two_instances_on_one_host_have_cookies_of_their_own(t: Tickler, users: dict[str, str]) -> None:
    assert (await protected(t, users, cookie="a")[0].sessions.cookie_for("u1")).startswith("a=")
    assert (await protected(t, users, cookie="a", https=True)[0].sessions.cookie_for("u1")).startswith("__Host-a=")
    with pytest.raises(InvalidInput, match="cookie"):
        protected(t, users, cookie="a;b")


async def test_over_https_the_cookie_is_of_this_host_alone(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users, https=True)
    cookie = await web.sessions.cookie_for("u1")
    assert cookie.startswith("__Host-notes_session=")
    assert cookie.endswith("; Secure")
    assert (await ask(app, headers={"cookie": cookie.partition(";")[0]})).body == b"Ada 0"
    assert (await ask(app, headers={"cookie": cookie.partition(";")[0].removeprefix("__Host-")})).body == b"None 0"
    assert (await ask(app, "POST", headers={"origin": "http://localhost"})).status == 403
    assert (await ask(app, "POST", headers={"origin": "https://localhost"})).status == 200


async def test_a_body_is_limited_by_its_path_announced_or_not(t: Tickler, users: dict[str, str]) -> None:
    _, app = protected(t, users, max_body=10, bodies={"/hooks": 100, "/hooks/small": 5, "/upload": None})
    for path, size, status in (
        ("/", 10, 200),
        ("/", 11, 413),
        ("/hooks", 100, 200),
        ("/hooks/x", 101, 413),
        ("/hooks/small", 6, 413),
        ("/upload", 100_000, 200),
    ):
        pieces = [b"x" * (size // 2), b"x" * (size - size // 2)]
        assert (await ask(app, "POST", path, body=pieces)).status == status, (path, size)
        assert (await ask(app, "POST", path, {"content-length": str(size)}, pieces)).status == status, (path, size)
    assert (await ask(app, "POST", "/", [("content-length", "1"), ("transfer-encoding", "chunked")])).status == 400


async def test_a_framework_that_answers_an_error_of_its_own_for_a_long_body_does_not_hide_the_reason(
    t: Tickler, users: dict[str, str]
) -> None:
    web, _ = protected(t, users)

    async def careless(scope: Any, receive: Receive, send: Send) -> None:
        if (await receive())["type"] == "http.disconnect":
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"cannot parse the body"})

    async def loud(scope: Any, receive: Receive, send: Send) -> None:
        await careless(scope, receive, send)
        raise ConnectionResetError

    for app in (careless, loud):
        got = await ask(web.protect(app), "POST", body=[b"x" * 2_000_000])
        assert (got.status, got.problem["detail"]) == (413, "the body is longer than 1048576 bytes: send less")


async def test_a_body_that_is_refused_after_the_answer_began_ends_the_request(t: Tickler, users: dict[str, str]) -> None:
    web, _ = protected(t, users, max_body=10)
    seen: list[str] = []

    async def early(scope: Any, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        seen.extend([(await receive())["type"] for _ in range(3)])
        await send({"type": "http.response.body", "body": b"as far as it came"})

    got = await ask(web.protect(early), "POST", body=[b"x", b"x" * 100, b"x"])
    assert (got.status, got.body, seen) == (200, b"as far as it came", ["http.request", "http.disconnect", "http.disconnect"])


@pytest.mark.parametrize("name", ["host", "authorization", "origin", "content-type"])
async def test_a_header_that_says_who_or_what_comes_once(t: Tickler, users: dict[str, str], name: str) -> None:
    _, app = protected(t, users)
    twice = [(name, "localhost"), *([] if name == "host" else [(name, "localhost")])]
    assert (await ask(app, headers=twice)).problem["field"] == name


@pytest.mark.parametrize(("path", "status"), [("/?" + "x" * 8_193, 414), ("/" + "x" * 8_193, 414)])
async def test_a_request_that_is_too_long_is_refused(t: Tickler, users: dict[str, str], path: str, status: int) -> None:
    _, app = protected(t, users)
    assert (await ask(app, path=path)).status == status
    assert (await ask(app, headers={"x": "y" * 33_000})).status == 431


async def test_a_client_that_asks_too_often_waits_and_others_do_not(t: Tickler, users: dict[str, str]) -> None:
    web, app = protected(t, users, rate=1.0)
    ada, bob = await signed_in(web), await signed_in(web, "u2")
    again = await signed_in(web)
    assert [(await ask(app, headers=each)).status for each in (ada, again, ada, bob)] == [200, 200, 429, 200]
    assert [(await ask(app, client=each)).status for each in ("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2")] == [
        200,
        200,
        429,
        200,
    ]


async def test_requests_at_once_are_limited_by_client_and_in_all(t: Tickler, users: dict[str, str]) -> None:
    go_on, inside = asyncio.Event(), 0

    async def slow(scope: Any, receive: Receive, send: Send) -> None:
        nonlocal inside
        inside += 1
        await go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    web, _ = protected(t, users, max_requests=3, max_requests_of_client=2)
    app = web.protect(slow)
    waiting = [asyncio.create_task(ask(app, client="192.0.2.1")) for _ in range(2)]
    async with asyncio.timeout(10):
        while inside < 2:
            await asyncio.sleep(0)
    assert (await ask(app, client="192.0.2.1")).status == 429
    waiting.append(asyncio.create_task(ask(app, client="192.0.2.2")))
    async with asyncio.timeout(10):
        while inside < 3:
            await asyncio.sleep(0)
    assert (await ask(app, client="192.0.2.3")).status == 503
    go_on.set()
    assert [(await each).status for each in waiting] == [200] * 3
    assert (await ask(app, client="192.0.2.3")).status == 200


async def test_browsers_are_sent_to_sign_in_and_back_and_programs_are_told(t: Tickler, users: dict[str, str]) -> None:
    _, app = protected(t, users)
    sent = await ask(app, path="/write?x=1&y=%2F", headers=HTML)
    assert (sent.status, sent.headers["location"]) == (303, "/sign-in?next=%2Fwrite%3Fx%3D1%26y%3D%252F")
    assert (await ask(app, "POST", "/write", {**HTML, **SAME})).headers["location"] == "/sign-in", "a form is not sent again"
    told = await ask(app, path="/write")
    assert (told.status, told.problem["title"], told.headers["www-authenticate"]) == (401, "Unauthorized", "Bearer")
    _, app = protected(t, users, sign_in=None)
    assert (await ask(app, path="/write", headers=HTML)).status == 401


async def test_an_application_renders_refusals_for_browsers(t: Tickler, users: dict[str, str]) -> None:
    async def find(subject: str) -> str | None:
        return users.get(subject)

    def page(scope: Mapping[str, Any], refused: Refused) -> str | None:
        return None if refused.status == 421 else f"<h1>{refused.status}</h1>"

    web = Web(t, "notes", user=find, error_page=page)
    app = web.protect(answering(web))
    got = await ask(app, "POST", headers={**HTML, **FOREIGN[0]})
    assert (got.status, got.body, got.headers["content-type"]) == (403, b"<h1>403</h1>", "text/html; charset=utf-8")
    assert (await ask(app, "POST", headers=FOREIGN[0])).problem["status"] == 403
    assert (await ask(app, headers=HTML, host="evil.example")).problem["status"] == 421
    assert (await ask(app, "HEAD", headers=HTML, host="evil.example")).body == b""


async def test_while_the_store_does_not_answer_sessions_get_a_503(
    t: Tickler, users: dict[str, str], monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    async def fail(*args: object, **kwargs: object) -> None:
        raise StoreUnavailable("the disk is full")

    web, app = protected(t, users)
    cookie = await signed_in(web)
    monkeypatch.setattr(t.store.records, "get", fail)
    got = await ask(app, headers=cookie)
    assert (got.status, got.headers["retry-after"]) == (503, "5")
    assert "disk" not in got.problem["detail"]
    assert (await ask(app)).status == 200


async def test_errors_of_the_application_are_its_own(t: Tickler, users: dict[str, str]) -> None:
    async def broken(scope: Any, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    web, _ = protected(t, users)
    with pytest.raises(ZeroDivisionError):
        await ask(web.protect(broken))


async def test_a_request_that_passed_no_middleware_has_no_visitor(t: Tickler, users: dict[str, str]) -> None:
    web, _ = protected(t, users)
    with pytest.raises(InvalidInput, match="`protect`"):
        web.visitor({"type": "http"})


@pytest.mark.parametrize("name", ["", "Notes", "a b", "a:b", "1a", "a" * 33, "é"])
async def test_a_name_that_fits_no_cookie_is_refused(t: Tickler, users: dict[str, str], name: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        make_web(t, name, users)


async def test_records_of_applications_cannot_be_written_by_others(t: Tickler) -> None:
    for kind in ("web:notes", "web:notes:token-nt", "web:x"):
        with pytest.raises(InvalidInput, match="reserved"):
            await t.records.put(kind, "cookie-key", "mine")
    await t.records.put("web", "a", 1)


async def test_applications_on_one_store_share_nothing(sqlite_url: str, users: dict[str, str]) -> None:
    async with connect(sqlite_url) as t:
        notes, other = make_web(t, "notes", users), make_web(t, "other", users)
        _, text = await notes.tokens(NoteToken, prefix="nt").create(NoteToken(scopes=("read",), user="u1"))
        assert await other.tokens(NoteToken, prefix="nt").check(text) is None
        assert await other.links.redeem(await notes.links.create("u1")) is None
        assert await notes.forms.token("a") != await other.forms.token("a")
        assert await t.store.records.list("server", now_ms=t.now_ms()) == [], "nor with the service"
