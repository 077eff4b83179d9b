"""Authorization: tokens, their scopes on every route, and tokens bound to an owner."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from pathlib import Path
from typing import Any

import pytest

from server.served import Answer, Api, serving
from server.surface import Route, every_route
from tickler import GiveUp, InvalidInput, ManualClock, Policy, PythonTarget, Schedule, StoreUnavailable, Tickler, connect
from tickler.access.tokens import CLOSED, SCOPES, Scope
from tickler.cli.app import run
from tickler.cli.commands.serve import _check_open
from tickler.model.delivery import Delivery
from tickler.records import worker_status as workers
from tickler.records.worker_status import WorkerReport
from tickler.server.settings import ServerSettings
from tickler.web.rate_limit import RateLimit

# What each route of the API takes. A new one is to be decided on, and added here.
SCOPE_OF = {
    "PUT /v1/schedules/{owner}/{key}": "write",
    "PATCH /v1/schedules/{owner}/{key}": "write",
    "GET /v1/schedules/{owner}/{key}": "read",
    "DELETE /v1/schedules/{owner}/{key}": "write",
    "GET /v1/schedules": "read",
    "POST /v1/schedules/{owner}/{key}/pause": "write",
    "POST /v1/schedules/{owner}/{key}/resume": "write",
    "POST /v1/schedules/{owner}/{key}/trigger": "write",
    "GET /v1/schedules/{owner}/{key}/preview": "read",
    "GET /v1/schedules/{owner}/{key}/why": "read",
    "GET /v1/schedules/{owner}/{key}/fires": "read",
    "GET /v1/preview": "read",
    "POST /v1/schedules:import": "write",
    "POST /v1/send/{owner}/{key}": "write",
    "GET /v1/schedules:export": "read",
    "GET /v1/fires": "read",
    "GET /v1/fires/{fire_id}": "read",
    "POST /v1/fires/{fire_id}/retry": "write",
    "POST /v1/fires/{fire_id}/cancel": "write",
    "POST /v1/fires:retry": "write",
    "GET /v1/tick": "operate, of all owners",
    "POST /v1/tick": "operate, of all owners",
    "GET /v1/stats": "read",
    "GET /v1/forecast": "read, of all owners",
    "GET /v1/doctor": "read, of all owners",
    "POST /v1/doctor:repair": "operate, of all owners",
    "GET /v1/audit": "read",
    "GET /v1/live": "read",
    "GET /health/live": "nothing",
    "GET /health/ready": "nothing",
    "GET /metrics": "read, of all owners",
}


async def token(t: Tickler, *scopes: Scope, owner: str | None = None) -> str:
    return (await t.tokens.create(scopes or SCOPES, owner=owner))[1]


# Tokens.


async def test_the_store_never_has_the_text_of_a_token(any_url: str, tmp_path: Path) -> None:
    async with connect(any_url, create=True) as t, serving(t) as api:
        made, text = await t.tokens.create(["read"], owner="u1", name="ada")
        secret = text.rpartition("_")[2]
        assert (await api.bearing(text).get("/v1/schedules")).status == 200
        kept = json.dumps([record.value for record in await t.store.records.list("token", now_ms=t.now_ms())])
        assert made.id in kept
        assert secret not in kept
        assert bytes.fromhex(secret).hex() not in kept
        assert text not in repr(await t.tokens.list())
        for file in tmp_path.iterdir():
            assert secret.encode() not in file.read_bytes()


async def test_secrets_are_compared_in_constant_time_also_where_there_is_no_such_token(
    t: Tickler, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = await token(t)
    compared: list[bool] = []
    right = hmac.compare_digest

    def compare(a: Any, b: Any) -> bool:
        compared.append(right(a, b))
        return compared[-1]

    monkeypatch.setattr(hmac, "compare_digest", compare)
    wrong = text[:-1] + ("0" if text[-1] != "0" else "1")
    unknown = f"tk_{'0' * 16}_{'0' * 64}"
    assert [(await t.tokens.check(each)) is not None for each in (text, wrong, unknown)] == [True, False, False]
    assert compared == [True, False, False]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic dTpw",
        "bearer tk_0_0",
        "Bearer tk_0000000000000000_" + "0" * 64,
        "Bearer \xff",
        "Bearer tk_../..",
        "Token x",
        "Bearer " + "A" * 5_000,
    ],
)
async def test_what_is_no_token_is_401_even_where_none_is_needed(t: Tickler, api: Api, header: str) -> None:
    for _ in range(2):
        for path in ("/v1/schedules", "/login"):
            sent = f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: {header}\r\n\r\n"
            answer = await api.bytes_for(sent.encode("latin-1"))
            assert b" 401 " in answer.split(b"\r\n", 1)[0]
            assert b"www-authenticate: Bearer" in answer
        await token(t)


async def test_a_token_without_bearer_is_told_to_send_it(t: Tickler, api: Api) -> None:
    text = await token(t)
    for header in (text, f"Token {text}", f"Basic {text}", ""):
        refused = await api.get("/v1/schedules", authorization=header)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Bearer error="invalid_request"')
        assert refused.json["detail"].endswith("send `Authorization: Bearer tk_…`")
        assert text not in refused.json["detail"]
    for header in (f"Bearer {text[:-1]}", "bearer x"):
        assert "may have been revoked" in (await api.get("/v1/schedules", authorization=header)).json["detail"]


async def test_a_token_ends_when_it_expires_and_when_it_is_revoked(t: Tickler, api: Api, clock: ManualClock) -> None:
    keeper = api.bearing(await token(t))
    _, short = await t.tokens.create(["read"], expires_at=clock.now_ms() + 10_000)
    made, long = await t.tokens.create(["read"])
    for text in (short, long):
        assert (await api.bearing(text).get("/v1/stats")).status == 200
    clock.advance(9.999)
    assert (await api.bearing(short).get("/v1/stats")).status == 200
    clock.advance(0.001)
    expired = await api.bearing(short).get("/v1/stats")
    assert (expired.status, expired.is_problem) == (401, True)
    assert await t.tokens.revoke(made.id)
    assert (await api.bearing(long).get("/v1/stats")).status == 401
    assert (await keeper.get("/v1/stats")).status == 200


async def test_a_token_revoked_by_another_process_is_taken_for_five_seconds_at_most(clock: ManualClock, sqlite_url: str) -> None:
    async with connect(sqlite_url, clock=clock) as t, connect(sqlite_url, clock=clock) as other, serving(t) as api:
        keeper = await token(t)
        made, text = await other.tokens.create(["read"])
        assert (await api.bearing(text).get("/v1/stats")).status == 200
        await other.tokens.revoke(made.id)
        clock.advance(5)
        assert (await api.bearing(text).get("/v1/stats")).status == 401
        assert (await api.bearing(keeper).get("/v1/stats")).status == 200


async def test_while_there_is_no_token_this_machine_may_do_everything_and_others_nothing(t: Tickler, api: Api) -> None:
    assert (await api.get("/v1/tick")).status == 200
    async with serving(t, ServerSettings(host="0.0.0.0")) as open_to_all:
        refused = await open_to_all.get("/v1/schedules")
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert (await open_to_all.get("/health/live")).status == 200
    await token(t)
    assert (await api.get("/v1/tick")).status == 401


async def test_the_service_stays_closed_when_the_last_token_expires_or_is_revoked(
    t: Tickler, api: Api, clock: ManualClock
) -> None:
    await t.tokens.create(["read"], expires_at=clock.now_ms() + 10_000)
    made, _ = await t.tokens.create(["read"])
    await t.tokens.revoke(made.id)
    clock.advance(10)
    assert await t.tokens.list() == []
    for _ in range(3):
        clock.advance(6)
        assert (await api.get("/v1/tick")).status == 401


async def test_a_store_of_an_earlier_version_is_closed_by_its_tokens_and_stays_so(
    t: Tickler, api: Api, clock: ManualClock
) -> None:
    made, _ = await t.tokens.create(["read"])
    await t.store.records.delete(*CLOSED)
    assert (await api.get("/v1/stats")).status == 401
    await t.store.records.delete(*CLOSED)
    await t.tokens.revoke(made.id)
    clock.advance(6)
    assert (await api.get("/v1/stats")).status == 401


async def test_a_store_that_cannot_note_that_it_is_closed_is_closed(
    t: Tickler, api: Api, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*args: object, **kwargs: object) -> None:
        raise StoreUnavailable("the disk is full")

    await token(t)
    await t.store.records.delete(*CLOSED)
    monkeypatch.setattr(t.store.records, "put", fail)
    assert (await api.get("/v1/stats")).status == 401


async def test_the_service_opens_again_only_when_somebody_says_so_and_no_token_is_left(t: Tickler, api: Api) -> None:
    assert not await t.tokens.open()
    made, _ = await t.tokens.create(["read"])
    with pytest.raises(InvalidInput, match="revoke them first"):
        await t.tokens.open()
    await t.tokens.revoke(made.id)
    assert (await api.get("/v1/stats")).status == 401
    assert await t.tokens.open()
    assert (await api.get("/v1/stats")).status == 200
    await token(t)
    assert (await api.get("/v1/stats")).status == 401


async def test_a_token_that_is_made_while_the_service_is_opened_closes_it(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = await t.tokens.create(["read"])
    await t.tokens.revoke(made.id)
    list_records = t.store.records.list

    async def meanwhile(*args: Any, **kwargs: Any) -> Any:
        found = await list_records(*args, **kwargs)
        monkeypatch.undo()
        await token(t)
        return found

    monkeypatch.setattr(t.store.records, "list", meanwhile)
    with pytest.raises(InvalidInput, match="a token was just created"):
        await t.tokens.open()
    assert await t.tokens.exist()


async def test_whoever_is_called_by_a_name_lets_nobody_in_without_a_token(t: Tickler) -> None:
    settings = ServerSettings(hosts=("tickler.example.org",))
    async with serving(t, settings) as api:
        for host in ("tickler.example.org", "localhost"):
            assert (await api("GET", "/v1/stats", headers={"host": host})).status == 401
    with pytest.raises(InvalidInput, match=r"tickler\.example\.org is reachable from other machines.*unset TICKLER_HOSTS"):
        await _check_open(t, settings, "sqlite:///t.db")
    await token(t, "read")
    await _check_open(t, settings, "sqlite:///t.db")


def test_serving_to_others_without_a_token_is_refused_with_the_remedy(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as leaving:
        run(["serve", "--store", sqlite_url, "--host", "0.0.0.0", "--port", "0"])
    assert leaving.value.code not in (0, None)
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert "there is no token yet" in said
    assert f"tickler token create --store {sqlite_url} --scope" in said


async def test_serving_to_others_is_allowed_once_there_is_a_token(t: Tickler) -> None:
    settings = ServerSettings(host="0.0.0.0")
    with pytest.raises(InvalidInput, match="no token yet"):
        await _check_open(t, settings, "sqlite:///t.db")
    await token(t, "read")
    await _check_open(t, settings, "sqlite:///t.db")


# Scopes.


def test_every_route_has_a_scope_that_somebody_decided_on() -> None:
    undecided = [route for route in every_route() if route.scope not in (*SCOPES, "nothing")]
    assert undecided == []
    decided = {
        f"{route.method} {route.path}": f"{route.scope}, of all owners" if route.all_owners else route.scope
        for route in every_route()
        if route.is_api
    }
    assert decided == SCOPE_OF


@pytest.mark.parametrize("route", every_route(), ids=lambda route: f"{route.method} {route.path}")
async def test_a_route_is_for_those_whose_token_has_its_scope(t: Tickler, api: Api, route: Route) -> None:
    if route.path == "/v1/live":
        route = route._replace(path="/v1/live?until=never")  # which is looked at only after who asks
    body = b"" if route.method in ("PUT", "POST") else None
    texts = {scope: await token(t, scope) for scope in SCOPES}

    async def status(api: Api) -> int:
        return (await api(route.method, route.at(), body, check=False)).status

    anonymous = await status(api)
    assert (anonymous == 401) if route.scope != "nothing" and route.is_api else anonymous != 500
    if not route.is_api and route.scope != "nothing":
        assert anonymous in (303, 401)
    for scope, text in texts.items():
        refused = await status(api.bearing(text)) == 403
        assert refused == (route.scope not in (scope, "nothing")), (scope, route)


# Owners.


@pytest.fixture
async def rivals(t: Tickler, clock: ManualClock) -> str:
    """Store data of another owner, marked in every part; return the id of a dead fire of it."""

    @t.handler("handler")
    async def fail(delivery: Delivery) -> None:
        raise GiveUp(f"{delivery.owner}-failure")

    for owner in ("rival", "mine"):
        for key in ("key", "other"):
            given: dict[str, Any] = {"owner": owner, "key": f"{owner}-{key}", "payload": f"{owner}-payload"}
            await t.schedules.put(Schedule(when="0 * * * *", target=PythonTarget("handler"), **given))
    await t.trigger("rival", "rival-key")
    await t.tick()
    await t.trigger("rival", "rival-other")
    await t.schedules.pause("rival", "rival-other", reason="rival-reason")
    await t.audit.record("rival-person", "put", owner="rival", key="rival-key", detail="rival-detail")
    await t.audit.record("rival-person", "repaired", detail="rival-detail")
    (dead,) = (await t.fires.list(state="dead")).items
    return dead.id


@pytest.fixture
async def bound(t: Tickler, api: Api, rivals: str) -> Api:
    return api.bearing(await token(t, "read", "write", owner="mine"))


async def contents(t: Tickler) -> list[Any]:
    states = [(await t.fires.list(state=state)).items for state in ("open", "dead", "waiting")]
    return [(await t.schedules.list()).items, *states, (await t.audit.list()).items]


@pytest.mark.parametrize(
    "route", [each for each in every_route() if each.scope != "nothing"], ids=lambda route: f"{route.method} {route.path}"
)
async def test_on_every_route_the_data_of_another_is_as_if_it_were_not_there(
    t: Tickler, bound: Api, rivals: str, route: Route
) -> None:
    before = await contents(t)

    async def ask(owner: str, key: str, fire_id: str) -> Answer:
        """Request a name in the path, in the query or in the body."""
        path = route.at(owner, key, fire_id)
        body: Any = None
        if route.path in ("/v1/schedules", "/v1/fires", "/v1/audit", "/v1/schedules:export", "/schedules", "/failed", "/audit"):
            path += f"?owner={owner}"
        if route.path == "/v1/fires:retry":
            body = {"owner": owner}
        elif route.path == "/v1/schedules:import":
            body = json.dumps({"owner": owner, "key": key, "when": "@daily"}).encode()
        elif route.method in ("PUT", "PATCH"):
            body = {"when": "@daily"}
        elif route.path == "/v1/preview":
            path += "?when=@daily"
        if route.path == "/v1/live":
            return await first_events(bound)
        return await bound(route.method, path, body)

    theirs = await ask("rival", "rival-key", rivals)
    nobodys = await ask("nobod", "nobod-key", f"fire_{'0' * 32}")
    assert theirs.status == nobodys.status
    renamed = theirs.body.replace(rivals.encode(), b"fire_" + b"0" * 32).replace(b"rival", b"nobod")
    assert re.sub(rb"\d{13}|[0-9a-f]{64}", b"", renamed) == re.sub(rb"\d{13}|[0-9a-f]{64}", b"", nobodys.body)
    asked_for = "{" in route.path or route.path in ("/v1/schedules:import", "/schedules")
    assert asked_for or b"rival" not in theirs.body
    if "{" in route.path and route.is_api:
        assert theirs.status == 404
    if route.all_owners and route.is_api:
        assert theirs.status == 403
        assert "this token is bound to one" in theirs.json["detail"]
        assert (await bound(route.method, "/v1/nothing-at-all")).status == 404
    assert await contents(t) == before or route.path == "/v1/schedules:import"
    assert await t.schedules.list(owner="nobod") == await t.schedules.list(owner="nothing")


async def first_events(api: Api) -> Answer:
    """Return the first events of a stream."""
    async with api.session.get(api.url("/v1/live"), headers=api.headers) as response, asyncio.timeout(10):
        return Answer(response.status, response.headers, await response.content.readuntil(b"\r\n\r\n"))


async def test_bound_tokens_see_their_own(t: Tickler, bound: Api) -> None:
    assert [each["key"] for each in (await bound.get("/v1/schedules")).json["items"]] == ["mine-key", "mine-other"]
    assert [each["key"] for each in (await bound.get("/v1/schedules?key_prefix=mine-k")).json["items"]] == ["mine-key"]
    assert {each["owner"] for each in (await bound.get("/v1/schedules:export")).lines} == {"mine"}
    await bound.post("/v1/schedules/mine/mine-key/trigger")
    await t.tick()
    assert [each["key"] for each in (await bound.get("/v1/fires?state=dead")).json["items"]] == ["mine-key"]
    stats = (await bound.get("/v1/stats")).json
    assert (stats["sleeping"], stats["dead"], stats["open"], stats["workers"]) == (2, 1, 0, [])
    assert (await bound.post("/v1/fires:retry", {})).json == {"retried": 1, "more": False}
    assert {each["owner"] for each in (await bound.get("/v1/audit")).json["items"]} == {"mine"}
    assert (await bound.get("/v1/fires?key=mine-key")).json["items"]


async def test_numbers_of_an_owner_with_many_schedules_are_marked_as_at_least(
    t: Tickler, api: Api, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(**asked: object) -> None:
        raise AssertionError("no schedule is read for its numbers")

    for n in range(12):
        await t.schedules.put(Schedule(owner="u1", key=f"k{n:02}", when="@hourly", target=PythonTarget("echo")))
    bound = api.bearing(await token(t, "read", owner="u1"))
    await t.trigger("u1", "k00")
    monkeypatch.setattr(t.store.schedules, "list", refuse)
    clock.advance(3_600)
    exact = (await bound.get("/v1/stats")).json
    assert {name: exact[name] for name in ("sleeping", "due", "open", "in_flight", "more", "next_due_at")} == {
        "sleeping": 0,
        "due": 12,
        "open": 1,
        "in_flight": 0,
        "more": False,
        "next_due_at": clock.now_ms(),
    }
    monkeypatch.setattr("tickler.server.stats.MAX_OWN_ROWS", 10)
    assert len(await t.fires.lease(clock.now_ms(), worker="w")) == 1
    some = (await bound.get("/v1/stats")).json
    assert (some["due"], some["more"], some["next_due_at"], some["in_flight"]) == (10, True, None, 1)
    monkeypatch.undo()
    monkeypatch.setattr("tickler.server.stats.MAX_OWN_ROWS", 10)
    page = (await bound("GET", "/", headers={"accept": "text/html"})).body.decode()
    assert re.search(r'data-number="due"[^>]*>10\+<', page)
    assert re.search(r'data-number="sleeping"[^>]*>0\+<', page)
    assert "unknown (too many schedules)" in page


async def test_bound_tokens_are_not_told_which_machine_it_was(t: Tickler, api: Api, clock: ManualClock) -> None:
    once = Policy(attempts=1)
    for key in ("tried", "lost", "held"):
        await t.schedules.put(Schedule(owner="u1", key=key, when="@hourly", target=PythonTarget("echo"), policy=once))
        await t.trigger("u1", key)
        if key == "tried":
            await t.tick()
        else:
            assert await t.fires.lease(clock.now_ms(), worker="vm:17733:8c2b6e", lease_ms=1_000 if key == "lost" else 900_000)
        clock.advance(60)
        await t.fires.lease(clock.now_ms(), worker="vm:17733:8c2b6e")
    report = WorkerReport(name="vm:17733:8c2b6e", doing="paused", started_at=0, seen_at=clock.now_ms())
    await workers.report(t.store.records, report)
    bound, unbound = api.bearing(await token(t, "read", owner="u1")), api.bearing(await token(t, "read"))
    stats = (await bound.get("/v1/stats")).json
    assert (stats["workers"], stats["workers_alive"]) == ([], (await unbound.get("/v1/stats")).json["workers_alive"])
    assert stats["workers_alive"] > 0
    names = {b"vm:17733:8c2b6e", *(name.encode() for name in t.own_workers)}
    (dead,) = (await bound.get("/v1/fires?state=dead")).json["items"]
    assert dead["reason"] == "a worker lost its lease in the last attempt"
    paths = ["/v1/fires", "/v1/fires?state=dead", f"/v1/fires/{dead['id']}", "/failed", "/"]
    for key in ("tried", "lost", "held"):
        at = f"/v1/schedules/u1/{key}"
        (nominal,) = {each["nominal_at"] for each in (await bound.get(f"{at}/fires")).json["items"]} or {clock.now_ms()}
        paths += [f"{at}/fires", f"{at}/why", f"{at}/why?at={nominal}", f"/schedules/u1/{key}"]
    told = 0
    for path in paths:
        answer = await bound("GET", path, headers={"accept": "text/html"} if "/v1/" not in path else {})
        assert answer.status == 200
        assert not [name for name in names if name in answer.body], path
        told += any(map((await unbound("GET", path)).body.__contains__, names))
    assert told >= 8, "whoever operates it is told"
    assert "a worker" in (await bound.get("/v1/schedules/u1/held/why")).json["sentence"]


async def test_those_who_watch_are_told_of_their_own_alone(t: Tickler, bound: Api) -> None:
    async with bound.session.get(bound.url("/v1/live"), headers=bound.headers) as response, asyncio.timeout(10):
        told = await response.content.readuntil(b"\r\n\r\n")
        await t.trigger("rival", "rival-key")
        await t.tick()
        await t.trigger("mine", "mine-key")
        await t.tick()
        told += await response.content.readuntil(b"\r\n\r\n")
    assert b"rival" not in told
    assert b'"key":"mine-key"' in told


@pytest.mark.parametrize("owner", ["mine", None])
async def test_whoever_may_not_put_a_target_is_not_told_which_networks_workers_reach(
    t: Tickler, api: Api, owner: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warnings would reveal, address by address, which internal networks are allowed."""
    monkeypatch.setenv("TICKLER_ALLOW_NETWORKS", "10.1.0.0/16")
    asked = "/v1/preview?when=@daily&target=http://10.{}.0.1/"
    reader = api.bearing((await t.tokens.create(["read"], owner=owner))[1])
    writer = api.bearing((await t.tokens.create(["read", "write"], owner=owner))[1])
    told = [await reader.get(asked.format(number)) for number in (1, 2)]
    assert [(each.status, each.field, each.json["detail"]) for each in told] == [
        (403, "target", "target needs a token with the scope 'write': leave it out")
    ] * 2
    assert (await reader.get("/v1/preview?when=@daily")).status == 200
    for number in (1, 2):
        put = await writer.put("/v1/schedules/mine/k", {"when": "@daily", "target": f"http://10.{number}.0.1/"})
        assert (await writer.get(asked.format(number))).json.get("warnings") == put.json.get("warnings")


async def test_bound_tokens_write_http_targets_only(t: Tickler, bound: Api) -> None:
    path = "/v1/schedules/mine/new"
    python, http = {"type": "python", "handler": "echo"}, {"type": "http", "url": "https://example.org/"}
    sqs = {"type": "sqs", "arn": "arn:aws:sqs:eu-west-1:123456789012:queue"}
    for target in (python, sqs):
        refused = await bound.put(path, {"when": "@daily", "target": target})
        assert (refused.status, refused.field) == (422, "target")
        assert (await bound.get(path)).status == 404
    lines = b"".join(
        json.dumps({"owner": "mine", "key": f"k{n}", "when": "@daily", "target": target}).encode() + b"\n"
        for n, target in enumerate((python, http, sqs))
    )
    assert ["error" in each for each in (await bound.post("/v1/schedules:import", lines)).lines] == [True, False, True]
    assert (await bound.put(path, {"when": "@daily", "target": http})).status == 201
    for target in (python, sqs):
        refused = await bound.patch(path, {"target": target})
        assert (refused.status, refused.field) == (422, "target")
    await t.schedules.put(Schedule(owner="mine", key="of-the-operator", when="@daily", target=PythonTarget("echo")))
    assert (await bound.patch("/v1/schedules/mine/of-the-operator", {"payload": "mine"})).field == "target"
    assert (await bound.patch(path, {"payload": 1})).json["target"] == http
    assert (await bound.put(path, {"when": "@hourly"})).status == 200


async def test_an_import_of_a_bound_token_puts_nothing_of_others(t: Tickler, bound: Api) -> None:
    lines = b"".join(
        json.dumps({"owner": owner, "key": "rival-key", "when": "@hourly"}).encode() + b"\n"
        for owner in ("rival", "mine", "nobod")
    )
    first, second, third = (await bound.post("/v1/schedules:import", lines)).lines
    assert first["error"] == third["error"]
    assert "error" not in second
    stored = await t.schedules.get("rival", "rival-key")
    assert stored is not None
    assert stored.version == 1


async def test_a_cursor_of_another_leads_nowhere(t: Tickler, api: Api, bound: Api) -> None:
    everything = api.bearing(await token(t))
    cursor = (await everything.get("/v1/schedules?limit=3")).json["next"]
    page = (await bound.get(f"/v1/schedules?after={cursor}")).json
    assert b"rival" not in json.dumps(page).encode()


async def test_a_bound_token_cannot_have_operate(t: Tickler) -> None:
    with pytest.raises(InvalidInput, match="operate covers all owners"):
        await t.tokens.create(["operate"], owner="u1")


# Rates.


async def test_a_token_that_asks_too_often_is_told_when_to_come_back(t: Tickler) -> None:
    texts = [await token(t) for _ in range(2)]
    async with serving(t, ServerSettings(rate=0.5)) as api:
        assert [(await api.bearing(texts[0]).get("/v1/stats")).status for _ in range(2)] == [200, 429]
        refused = await api.bearing(texts[0]).get("/v1/stats")
        assert (refused.is_problem, refused.headers["retry-after"]) == (True, "2")
        assert (await api.bearing(texts[1]).get("/v1/stats")).status == 200
        assert (await api.get("/health/live")).status == 200


def test_a_rate_fills_up_again_as_time_goes_by() -> None:
    now = 0.0
    rates = RateLimit(10, lambda: now)
    assert [rates.take("a") for _ in range(20)] == [0.0] * 20
    assert rates.take("a") == pytest.approx(0.1)
    now = 0.1
    assert rates.take("a") == 0
    assert rates.take("a") > 0
    now = 1_000.0
    assert [rates.take("a") for _ in range(21)].count(0.0) == 20


def test_a_rate_remembers_so_many_callers_and_no_more() -> None:
    rates = RateLimit(1, lambda: 0.0)
    for number in range(25_000):
        assert rates.take(f"caller {number}") == 0
    assert len(rates._buckets) <= 10_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RATE", "0"),
        ("RATE", "-1"),
        ("MAX_BODY", "0"),
        ("BODY_S", "0"),
        ("PORT", "70000"),
        ("PORT", "x"),
        ("SECURE_COOKIE", "perhaps"),
    ],
)
def test_settings_that_do_not_fit_are_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match="settings"):
        ServerSettings.from_environment({f"TICKLER_{name}": value})


async def test_a_token_that_a_newer_version_made_is_not_valid_here_and_hides_no_other(t: Tickler, api: Api) -> None:
    known, _ = await t.tokens.create(["read"])
    strange, text = await t.tokens.create(["read"])
    record = await t.store.records.get("token", strange.id, now_ms=t.now_ms())
    assert record is not None
    assert isinstance(record.value, dict)
    value = json.dumps({**record.value, "scopes": ["dance"]}).encode()
    await t.store.records.put("token", strange.id, value, now_ms=t.now_ms())
    assert [token.id for token in await t.tokens.list()] == [known.id]
    assert (await api.bearing(text).get("/v1/schedules")).status == 401
