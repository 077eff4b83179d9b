"""`/v1/fires`: open, waiting and dead fires over HTTP."""

from __future__ import annotations

import pytest

from server.served import Api
from tickler import GiveUp, ManualClock, Policy, PythonTarget, RetryLater, Schedule, Tickler
from tickler.model.delivery import Delivery

PATH = "/v1/schedules/u1/digest"


@pytest.fixture
def mended() -> list[bool]:
    """Empty while the target is broken."""
    return []


@pytest.fixture
async def t(t: Tickler, mended: list[bool]) -> Tickler:
    @t.handler("digest")
    async def digest(delivery: Delivery) -> None:
        if not mended:
            raise GiveUp("there is no such mailbox")

    return t


async def put(t: Tickler, owner: str = "u1", key: str = "digest", **fields: object) -> None:
    given = {"owner": owner, "key": key, "when": "0 * * * *", "target": PythonTarget("digest"), **fields}
    await t.schedules.put(Schedule(**given))  # type: ignore[arg-type]  # any field of a schedule


async def kill(t: Tickler, *keys: str, owner: str = "u1") -> list[str]:
    """Fire each schedule with a failing target; return the ids of the dead fires."""
    for key in keys:
        await put(t, owner, key)
        await t.trigger(owner, key)
    await t.tick()
    return [fire.id for fire in (await t.fires.list(state="dead", owner=owner)).items]


async def test_a_schedule_with_a_dead_fire_is_failing_in_lists_and_when_it_is_read(
    t: Tickler, api: Api, mended: list[bool], clock: ManualClock
) -> None:
    (id,) = await kill(t, "digest")
    await kill(t, "digest", owner="u2")
    await put(t, key="sound")
    read = await api.get(PATH)
    failed = {"result": "failed", "at": clock.now_ms()}
    assert (read.json["failing"], read.json["last"], read.json["state"]) == (True, failed, "active")
    items = (await api.get("/v1/schedules")).json["items"]
    assert [(each["owner"], each["key"], each["failing"], each["last"]) for each in items] == [
        ("u1", "digest", True, failed),
        ("u1", "sound", False, None),
        ("u2", "digest", True, failed),
    ]
    assert (await api.get(PATH, if_none_match=read.headers["etag"])).status == 304

    (first,) = (page := (await api.get("/v1/schedules?failing=true&limit=1")).json)["items"]
    (second,) = (await api.get(f"/v1/schedules?failing=true&after={page['next']}")).json["items"]
    assert [first, second] == [items[0], items[2]]
    assert (await api.get("/v1/schedules?failing=true&owner=u2")).json["items"] == [items[2]]
    assert (await api.get("/v1/schedules?failing=false")).json["items"] == items
    assert (await api.get("/v1/schedules?failing=yes")).status == 400
    bound = api.bearing((await t.tokens.create(["read"], owner="u2"))[1])
    assert (await bound.get("/v1/schedules?failing=true")).json["items"] == [items[2]]
    assert (await bound.get("/v1/schedules?failing=true&owner=u1")).json["items"] == []

    mended.append(True)
    clock.advance(1)
    await t.fires.retry(id)
    await t.tick()
    anybody = api.bearing((await t.tokens.create(["read"]))[1])
    again = await anybody.get(PATH, if_none_match=read.headers["etag"])
    assert (again.status, again.json["failing"]) == (200, False)
    assert again.json["last"] == {"result": "delivered", "at": clock.now_ms()}


async def test_what_is_dead_is_looked_at_and_sent_again(t: Tickler, api: Api, mended: list[bool], clock: ManualClock) -> None:
    (id,) = await kill(t, "digest")
    (listed,) = (await api.get("/v1/fires?state=dead")).json["items"]
    assert listed == (await api.get(f"/v1/fires/{id}")).json
    assert (listed["id"], listed["state"], listed["attempt"]) == (id, "dead", 1)
    assert "no such mailbox" in listed["reason"]

    mended.append(True)
    clock.advance(1)
    again = await api.post(f"/v1/fires/{id}/retry")
    assert (again.status, again.json["state"], again.json["attempt"]) == (202, "open", 0)
    assert (await api.post(f"/v1/fires/{id}/retry")).status == 404
    assert (await api.post("/v1/tick")).json["delivered"] == 1
    assert (await api.get(f"/v1/fires/{id}")).status == 404
    happened = [entry["happened"] for entry in (await api.get(f"{PATH}/fires")).json["items"]]
    assert happened == ["delivered", "retried", "failed"]


async def test_what_is_postponed_is_open_and_in_the_history_until_when_and_why(t: Tickler, api: Api, clock: ManualClock) -> None:
    @t.handler("later")
    async def later(delivery: Delivery) -> None:
        raise RetryLater(after=600, reason="the bank is closed")

    await put(t, target=PythonTarget("later"))
    await t.trigger("u1", "digest")
    summary = (await api.post("/v1/tick")).json
    assert (summary["postponed"], summary["failed"], summary["left"]) == (1, 0, False)
    until_at = clock.now_ms() + 600_000
    (fire,) = (await api.get("/v1/fires")).json["items"]
    assert (fire["state"], fire["attempt"], fire["deliver_after"]) == ("open", 0, until_at)
    assert fire["reason"] == "postponed: the bank is closed"
    (entry,) = (await api.get(f"{PATH}/fires")).json["items"]
    assert (entry["happened"], entry["until_at"], entry["detail"]) == ("postponed", until_at, "the bank is closed")
    read = (await api.get(PATH)).json
    assert (read["failing"], read["last"]["result"]) == (False, "postponed")
    described = (await api.get("/openapi.json")).json["components"]["schemas"]
    assert "postponed" in described["Entry"]["properties"]["happened"]["enum"]
    assert "postponed" in described["LastResult"]["properties"]["result"]["enum"]
    assert (await api.post(f"/v1/fires/{fire['id']}/cancel")).status == 200


async def test_a_fire_that_nobody_has_is_cancelled(t: Tickler, api: Api) -> None:
    await put(t)
    fire = (await api.post(f"{PATH}/trigger")).json
    cancelled = await api.post(f"/v1/fires/{fire['id']}/cancel", {})
    assert (cancelled.status, cancelled.json["id"]) == (200, fire["id"])
    assert (await api.post(f"/v1/fires/{fire['id']}/cancel")).status == 404
    (entry,) = (await api.get(f"{PATH}/fires")).json["items"]
    assert (entry["happened"], entry["detail"]) == ("cancelled", "by local")


@pytest.mark.parametrize(
    ("body", "count", "left"),
    [({}, 4, 0), ({"owner": "u1"}, 3, 1), ({"owner": "u1", "key": "b"}, 1, 3), ({"owner": "u9"}, 0, 4)],
)
async def test_all_that_is_dead_is_sent_again_of_all_of_an_owner_or_of_a_schedule(
    t: Tickler, api: Api, body: dict[str, str], count: int, left: int
) -> None:
    await kill(t, "a", "b", "c")
    await kill(t, "a", owner="u2")
    answer = await api.post("/v1/fires:retry", body)
    assert (answer.status, answer.json) == (202, {"retried": count, "more": False})
    assert len((await api.get("/v1/fires?state=dead")).json["items"]) == left
    assert len((await api.get("/v1/fires")).json["items"]) == count


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"owner": 1}, 400, "owner"),
        ({"key": "a"}, 422, "key"),
        ({"colour": "red"}, 400, "colour"),
        ([], 400, None),
        ({"owner": None}, 400, "owner"),
        ({"owner": ""}, 422, "owner"),
        ({"owner": "\n"}, 422, "owner"),
        (None, 415, "content-type"),
    ],
)
async def test_what_to_send_again_has_to_be_said_right(api: Api, body: object, status: int, field: str | None) -> None:
    refused = await api.post("/v1/fires:retry", body)
    assert (refused.status, refused.field) == (status, field)


async def test_fires_and_history_come_in_pages(t: Tickler, api: Api, clock: ManualClock) -> None:
    for key in "abcdefg":
        clock.advance(1)
        await kill(t, key)

    async def keys(path: str) -> list[str]:
        found, after = [], ""
        while True:
            page = (await api.get(f"{path}&limit=3{after}")).json
            found += [item["key"] for item in page["items"]]
            assert len(page["items"]) <= 3
            if page["next"] is None:
                return found
            after = f"&after={page['next']}"

    assert await keys("/v1/fires?state=dead") == list("abcdefg")
    for _ in range(6):
        clock.advance(1)
        await t.trigger("u1", "a")
        await t.tick()
    assert await keys(f"{PATH.replace('digest', 'a')}/fires?") == ["a"] * 7
    assert await keys("/v1/fires?state=dead&owner=u1&key=a") == ["a"] * 7


async def test_what_waits_is_listed_as_waiting(t: Tickler, api: Api, clock: ManualClock) -> None:
    await put(t, policy=Policy(overlap="wait", missed="all"))
    clock.advance(2 * 3600)
    await t.fires.claim(clock.now_ms(), worker="w1")
    assert len((await api.get("/v1/fires?state=waiting")).json["items"]) == 1
    assert len((await api.get("/v1/fires?state=open")).json["items"]) == 1


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("state=late", 400, "state"),
        ("key=a", 422, "key"),
        ("owner=", 422, "owner"),
        ("after=x", 422, "after"),
        ("limit=0", 400, "limit"),
        ("after=1-", 422, "after"),
        ("after=9999999999999999-x", 422, "after"),
        ("fire_id=x", 400, "fire_id"),
    ],
)
async def test_parameters_that_do_not_fit_are_refused_by_name(api: Api, query: str, status: int, field: str) -> None:
    refused = await api.get(f"/v1/fires?{query}")
    assert (refused.status, refused.field) == (status, field)


@pytest.mark.parametrize("id", ["fire_0", "x", "a%2Fb", "%F0%9F%98%80", "..", "x" * 200])
async def test_a_fire_that_is_not_there_is_404(api: Api, id: str) -> None:
    assert (await api.get(f"/v1/fires/{id}")).status == 404
    assert (await api.post(f"/v1/fires/{id}/retry")).status == 404
    assert (await api.post(f"/v1/fires/{id}/cancel")).status == 404


@pytest.mark.parametrize("id", ["%0A", "x" * 201, "%E2%80%A8"])
async def test_an_id_that_cannot_be_is_not_there_either(api: Api, id: str) -> None:
    refused = await api.get(f"/v1/fires/{id}")
    assert refused.status == 404


async def test_who_sent_what_again_is_remembered(t: Tickler, api: Api) -> None:
    first, _ = await kill(t, "a", "b")
    await api.post(f"/v1/fires/{first}/retry")
    await api.post("/v1/fires:retry", {"owner": "u1"})
    await api.post(f"/v1/fires/{first}/cancel")
    deeds = (await api.get("/v1/audit?owner=u1")).json["items"]
    assert {(deed["action"], deed["by"], deed.get("detail")) for deed in deeds} == {
        ("retried", "local", first),
        ("retried all", "local", "1 fires"),
        ("cancelled", "local", first),
    }


async def test_so_many_are_sent_again_at_once_and_it_is_said_that_there_are_more(
    t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickler.server.bulk_retry.MAX_RETRIED", 3)
    await kill(t, *"abcd", owner="u1")
    await kill(t, "a", owner="u2")
    answers = [(await api.post("/v1/fires:retry", {})).json for _ in range(3)]
    assert answers == [{"retried": 3, "more": True}, {"retried": 2, "more": False}, {"retried": 0, "more": False}]


async def test_every_owner_is_told_of_what_was_sent_again_for_all(t: Tickler, api: Api) -> None:
    for owner in ("u1", "u2"):
        await kill(t, "a", "b", owner=owner)
    await put(t, "u3", "a")
    await api.post("/v1/fires:retry", {})
    told = {owner: [deed.detail for deed in (await t.audit.list(owner=owner)).items] for owner in ("u1", "u2", "u3")}
    assert told == {"u1": ["2 of this owner"], "u2": ["2 of this owner"], "u3": []}
    assert "4 fires, of 2 owners" in [deed.detail for deed in (await t.audit.list()).items]
