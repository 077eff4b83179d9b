"""`/v1/schedules` and `/v1/preview`: schedules put, read, changed, deleted and previewed over HTTP."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from server.served import Api, serving
from tickler import ManualClock, Schedule, Tickler, connect
from tickler.server.settings import ServerSettings

DAILY = {"when": "0 9 * * *", "tz": "Europe/Paris", "target": "https://example.org/hook"}
PATH = "/v1/schedules/u1/digest"


def path(owner: str, key: str, more: str = "") -> str:
    return f"/v1/schedules/{quote(owner, safe='')}/{quote(key, safe='')}{more}"


# Put and get.


async def test_a_schedule_is_put_and_read_as_it_is_stored(api: Api) -> None:
    put = await api.put(
        PATH, {**DAILY, "payload": {"n": [1, None]}, "policy": {"attempts": 3}, "starts_at": "2031-01-01T00:00:00Z"}
    )
    assert (put.status, put.headers["etag"].startswith('"1-')) == (201, True)
    got = await api.get(PATH)
    assert (got.status, got.headers["etag"], got.headers["content-type"]) == (200, put.headers["etag"], "application/json")
    assert (
        got.json
        == put.json | {"failing": False, "last": None}
        == {
            "owner": "u1",
            "key": "digest",
            "when": "0 9 * * *",
            "tz": "Europe/Paris",
            "target": {"type": "http", "url": "https://example.org/hook"},
            "payload": {"n": [1, None]},
            "policy": {"attempts": 3},
            "starts_at": 1_924_992_000_000,
            "enabled": True,
            "state": "active",
            "next_fire_at": 1_925_020_800_000,
            "version": 1,
            "created_at": 1_921_406_400_000,
            "updated_at": 1_921_406_400_000,
            "failing": False,
            "last": None,
        }
    )


def instants(value: Any, name: str = "") -> Iterator[Any]:
    """Yield the values named `at` or `…_at` in a response."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from instants(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from instants(each, name)
    elif name == "at" or name.endswith("_at"):
        yield value


async def test_every_instant_in_an_answer_is_in_milliseconds(t: Tickler, api: Api, clock: ManualClock) -> None:
    bounds = {"starts_at": "2030-11-20T00:00:00Z", "ends_at": "2031-01-01T00:00:00Z"}
    await api.put(PATH, {"when": "@hourly", "target": {"type": "python", "handler": "echo"}, **bounds})
    fire_id = (await api.post(f"{PATH}/trigger")).json["id"]
    found = [*instants((await api.get(f"/v1/fires/{fire_id}")).json)]
    clock.advance(3_600)
    await t.tick()
    for more in ("", "/preview?n=3", "/why", "/fires"):
        found += instants((await api.get(PATH + more)).json)
    for path in ("/v1/schedules", "/v1/stats", "/v1/audit", "/v1/doctor", "/v1/forecast"):
        found += instants((await api.get(path)).json)
    found += instants((await api.get("/v1/schedules:export")).lines)
    assert len(found) > 20
    assert [each for each in found if each is not None and not isinstance(each, int)] == []


async def test_putting_it_again_is_new_only_the_first_time(api: Api, clock: ManualClock) -> None:
    assert (await api.put(PATH, DAILY)).status == 201
    clock.advance(1)
    same = await api.put(PATH, DAILY)
    assert (same.status, same.json["version"]) == (200, 1)
    other = await api.put(PATH, {**DAILY, "payload": 7})
    assert (other.status, other.json["version"], other.headers["etag"][:3]) == (200, 2, '"2-')


async def test_what_is_read_can_be_put_back_by_its_declared_fields(api: Api) -> None:
    await api.put(PATH, {"when": {"weekly": {"tue": {"time": "09:00"}, "mon": {"time": None}}}, "ends_at": 1_950_000_000_000})
    read = (await api.get(PATH)).json
    assert read["when"] == "weekly(tue 09:00)"
    declared = {name: read[name] for name in ("owner", "key", "when", "tz", "payload", "ends_at", "enabled")}
    assert (await api.put(PATH, declared)).json["version"] == 1


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "when"),
        ({"when": "no"}, 422, "when"),
        ({"when": "0 9 * * *", "tz": "Mars/Base"}, 422, "tz"),
        ({"when": "0 9 * * *", "tz": 7}, 422, "tz"),
        ({"when": "0 0 30 2 *"}, 422, "when"),
        ({"when": "at(2001-01-01T00:00:00)"}, 422, "when"),
        ({"when": {"weekly": {"mon": {"enabled": True}}}}, 422, "when"),
        ({"when": 7}, 422, "when"),
        ({**DAILY, "target": "ftp://example.org"}, 422, "target.url"),
        ({**DAILY, "target": {"type": "pigeon"}}, 422, "target"),
        ({**DAILY, "policy": {"attempts": 0}}, 422, "policy.attempts"),
        ({**DAILY, "policy": {"patience": 1}}, 422, "policy.patience"),
        ({**DAILY, "enabled": None}, 422, "enabled"),
        ({**DAILY, "enabled": "yes"}, 422, "enabled"),
        ({**DAILY, "starts_at": 12}, 422, "starts_at"),
        ({**DAILY, "colour": "red"}, 422, "colour"),
        ({**DAILY, "owner": "u2"}, 422, "owner"),
        ({**DAILY, "key": 7}, 422, "key"),
        ([], 400, None),
        (None, 415, "content-type"),
    ],
)
async def test_what_does_not_fit_is_refused_by_the_name_of_its_field(api: Api, body: Any, status: int, field: str | None) -> None:
    refused = await api.put(PATH, body)
    assert (refused.status, refused.field) == (status, field)
    assert refused.json["title"]
    assert refused.json["type"].startswith("https://tickler.invalid/problems/")
    assert (await api.get(PATH)).status == 404


async def test_headers_and_secrets_do_not_come_back(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    target = {"type": "http", "url": "https://example.org/", "headers": {"x-api-key": "swordfish"}}
    monkeypatch.setenv("TICKLER_KEY", base64.urlsafe_b64encode(bytes(32)).decode())
    async with connect("memory://", clock=clock) as t, serving(t) as api:
        assert (await api.put(PATH, {**DAILY, "target": target})).status == 201
        for where in (PATH, "/v1/schedules", "/v1/schedules:export"):
            answer = await api.get(where)
            assert b"swordfish" not in answer.body
            assert b"x-api-key" in answer.body


# Names.


@pytest.mark.parametrize(
    "name",
    [
        "a/b",
        "/",
        "//",
        "a//b/",
        "100%",
        "%2F",
        "%252F",
        "%",
        "a b",
        " ",
        "+",
        "a+b",
        ".",
        "..",
        "...",
        "../..",
        "a?b#c",
        "a&b=c",
        "日本語",
        "é",
        "e\u0301",
        "😀",
        "a;b:c@d",
        "~",
        "\\",
        '"',
        "'",
        "<b>",
        "import",
        "{owner:str}",
        "x" * 512,
        "é" * 256,
    ],
)
async def test_owner_and_key_may_have_anything_in_them_that_is_printed(t: Tickler, api: Api, name: str) -> None:
    owner = key = name
    put = await api.put(path(owner, key), {**DAILY, "target": {"type": "python", "handler": "echo"}, "owner": owner, "key": key})
    assert (put.status, put.json["owner"], put.json["key"]) == (201, owner, key)
    assert await t.schedules.get(owner, key) is not None
    assert (await api.get(path(owner, key))).json["version"] == 1
    assert (await api.post(path(owner, key, "/pause"))).json["state"] == "paused"
    assert (await api.post(path(owner, key, "/resume"))).json["state"] == "active"
    assert (await api.post(path(owner, key, "/trigger"))).json["key"] == key
    assert (await api.get(path(owner, key, "/why"))).json["owner"] == owner
    assert (await api.get(path(owner, key, "/fires"))).json["items"] == []
    assert len((await api.get(path(owner, key, "/preview?n=3"))).json["next"]) == 3
    query = f"owner={quote(owner, safe='')}&key"
    listed = await api.get(f"/v1/schedules?{query}_prefix={quote(key, safe='')}")
    assert [(each["owner"], each["key"]) for each in listed.json["items"]] == [(owner, key)]
    assert len((await api.get(f"/v1/fires?{query}={quote(key, safe='')}")).json["items"]) == 1
    assert (await api.delete(path(owner, key))).status == 204
    assert (await api.get(path(owner, key))).status == 404


@pytest.mark.parametrize("name", ["%00", "%0A", "%1F", "%7F", "%C2%85", "x" * 513, "%C3%A9" * 257])
async def test_names_that_cannot_be_are_refused(api: Api, name: str) -> None:
    for where in (f"/v1/schedules/{name}/digest", f"/v1/schedules/u1/{name}"):
        assert (await api.put(where, DAILY)).status in (400, 422)
        assert (await api.get(where)).status in (400, 422)


@pytest.mark.parametrize("name", ["%", "%zz", "%f", "%FF", "%ED%A0%80", "%C3"])
async def test_a_path_that_is_no_text_is_refused(api: Api, name: str) -> None:
    refused = await api.get(f"/v1/schedules/u1/{name}")
    assert refused.status == 400
    assert refused.is_problem


@pytest.mark.parametrize(
    "where", ["/v1/schedules/", "//v1/schedules", "/v1//schedules", "/v1/schedules//digest", "/v1/schedules/u1/"]
)
async def test_there_is_one_way_to_write_a_path(api: Api, where: str) -> None:
    answer = await api.get(where)
    assert answer.status == 404
    assert answer.is_problem


# Versions.


async def test_if_match_writes_only_over_the_version_that_was_read(api: Api) -> None:
    await api.put(PATH, DAILY)
    assert (await api.put(PATH, {**DAILY, "payload": 1}, if_match='"1"')).json["version"] == 2
    lost = await api.put(PATH, {**DAILY, "payload": 2}, if_match='"1"')
    assert lost.status == 412
    assert "at version 2, not at version 1" in lost.json["detail"]
    assert (await api.get(PATH)).json["payload"] == 1
    assert (await api.put(PATH, {**DAILY, "payload": 3}, if_match='W/"2"')).status == 200
    assert (await api.put(PATH, {**DAILY, "payload": 4}, if_match="*")).status == 200
    assert (await api.delete(PATH, if_match='"3"')).status == 412
    assert (await api.delete(PATH, if_match='"4"')).status == 204


async def test_if_match_of_what_is_not_there_makes_nothing(api: Api) -> None:
    for etag in ("*", '"1"'):
        assert (await api.put(PATH, DAILY, if_match=etag)).status == 412
    assert (await api.get(PATH)).status == 404
    assert (await api.delete(PATH, if_match='"1"')).status == 404


async def test_if_none_match_makes_only_what_is_not_there(api: Api) -> None:
    assert (await api.put(PATH, DAILY, if_none_match="*")).status == 201
    assert (await api.put(PATH, {**DAILY, "payload": 1}, if_none_match="*")).status == 412
    assert (await api.get(PATH)).json["payload"] is None


@pytest.mark.parametrize(
    "headers", [{"if_match": "1"}, {"if_match": '"x"'}, {"if_match": '"0"'}, {"if_match": '"1", x'}, {"if_none_match": '"1"'}]
)
async def test_a_condition_that_does_not_read_is_refused(api: Api, headers: dict[str, str]) -> None:
    refused = await api.put(PATH, DAILY, **headers)
    assert refused.status == 400
    assert refused.field in ("if-match", "if-none-match")


async def test_conditions_that_contradict_each_other_are_refused(api: Api) -> None:
    assert (await api.put(PATH, DAILY, if_match='"1"', if_none_match="*")).status == 422


# What a put removes, and patches.


async def test_a_put_that_replaces_says_beside_the_schedule_what_it_removed(api: Api) -> None:
    first = await api.put(PATH, {**DAILY, "payload": 1, "policy": {"attempts": 3, "grace": 5}})
    assert "tickler-removed" not in first.headers
    same = await api.put(PATH, {**DAILY, "payload": 2, "policy": {"attempts": 4}})
    assert same.headers["tickler-removed"] == "policy.grace"
    bare = await api.put(PATH, {"when": "0 9 * * *"})
    assert bare.headers["tickler-removed"] == "tz, target, payload, policy"
    assert "removed" not in bare.json


@pytest.mark.parametrize("kind", ["application/merge-patch+json", "application/json; charset=utf-8"])
async def test_a_patch_changes_what_it_names(api: Api, clock: ManualClock, kind: str) -> None:
    put = (await api.put(PATH, {**DAILY, "payload": {"a": 1, "b": 2}, "policy": {"attempts": 3}})).json
    clock.advance(1)
    patched = await api("PATCH", PATH, b'{"payload": {"a": null}}', headers={"content-type": kind})
    assert (patched.status, patched.headers["etag"]) == (200, (await api.get(PATH)).headers["etag"])
    assert patched.json == put | {"payload": {"b": 2}, "version": 2, "updated_at": put["updated_at"] + 1_000}
    gone = await api.patch(PATH, {"policy": None, "target": None})
    assert (gone.headers["tickler-removed"], gone.json["tz"]) == ("target, policy", "Europe/Paris")


async def test_a_put_over_a_paused_schedule_says_that_it_resumed_it(api: Api) -> None:
    await api.put(PATH, DAILY)
    await api.post(f"{PATH}/pause")
    assert (await api.put(PATH, DAILY)).headers["tickler-removed"] == "paused"


async def test_a_patch_that_changes_nothing_is_answered_and_not_remembered(api: Api) -> None:
    put = await api.put(PATH, DAILY)
    for patch in ({}, {"when": DAILY["when"]}, {"payload": None}):
        patched = await api.patch(PATH, patch)
        assert (patched.status, patched.json, patched.headers["etag"]) == (200, put.json, put.headers["etag"])
    assert [deed["action"] for deed in (await api.get("/v1/audit")).json["items"]] == ["put"]
    assert (await api.patch("/v1/schedules/u1/other", {})).status == 404


@pytest.mark.parametrize("kind", ["application/json-patch+json", "text/plain", "application/vnd.api+json"])
async def test_a_patch_of_another_kind_is_refused_with_the_kinds_there_are(api: Api, kind: str) -> None:
    await api.put(PATH, DAILY)
    refused = await api("PATCH", PATH, b"[]", headers={"content-type": kind})
    assert (refused.status, refused.headers["accept-patch"].split(", ")[0]) == (415, "application/merge-patch+json")


@pytest.mark.parametrize(
    ("patch", "status", "field"),
    [
        ([], 400, None),
        ({"when": "0 25 * * *"}, 422, "when"),
        ({"when": None}, 422, "when"),
        ({"tz": "No/Where"}, 422, "tz"),
        ({"owner": "u2"}, 422, "owner"),
        ({"version": 7}, 422, "version"),
        ({"policy": {"attempts": 0}}, 422, "policy.attempts"),
        ({"target": {"url": "ftp://x"}}, 422, "target.url"),
        ({"ends_at": "2001-01-01T00:00:00Z"}, 422, "when"),
    ],
)
async def test_a_patch_that_does_not_fit_is_refused_by_name(api: Api, patch: Any, status: int, field: str | None) -> None:
    await api.put(PATH, DAILY)
    before = await api.get(PATH)
    refused = await api.patch(PATH, patch)
    assert (refused.status, refused.field) == (status, field)
    assert (await api.get(PATH)).json == before.json


async def test_a_patch_with_a_condition_is_made_only_if_that_holds(api: Api) -> None:
    etag = (await api.put(PATH, DAILY)).headers["etag"]
    assert (await api.patch(PATH, {"payload": 1}, if_match='"7"')).status == 412
    assert (await api.patch(PATH, {"payload": 1}, if_none_match="*")).status == 412
    assert (await api.patch(PATH, {"payload": 1}, if_match=etag)).status == 200
    assert (await api.patch(PATH, {"payload": 2}, if_match=etag)).status == 412
    assert (await api.patch(PATH, {"payload": 2}, if_match="*")).json["version"] == 3
    assert (await api.patch("/v1/schedules/u1/other", {"payload": 2}, if_match="*")).status == 404


async def test_patches_at_once_lose_nothing(api: Api) -> None:
    await api.put(PATH, {**DAILY, "payload": {}})
    answers = await asyncio.gather(*(api.patch(PATH, {"payload": {f"k{number}": number}}) for number in range(10)))
    assert [answer.status for answer in answers] == [200] * 10
    assert (await api.get(PATH)).json["payload"] == {f"k{number}": number for number in range(10)}


async def test_stored_headers_are_not_sent_to_another_host_by_a_patch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKLER_KEY", base64.urlsafe_b64encode(bytes(32)).decode())
    async with connect("memory://", clock=ManualClock(1_921_406_400_000)) as t, serving(t) as api:
        target = {"type": "http", "url": "https://example.org/a", "headers": {"authorization": "Bearer hunter2"}}
        await api.put(PATH, {"when": "@daily", "target": target})
        moved = await api.patch(PATH, {"target": {"url": "https://attacker.example.net/a"}})
        assert (moved.status, moved.field) == (422, "target.url")
        assert "stored only for https://example.org:443: send them again" in moved.json["detail"]
        same = await api.patch(PATH, {"target": {"url": "https://example.org/b", "headers": {"x-team": "blue"}}})
        assert same.json["target"]["headers"] == {"authorization": "•••", "x-team": "•••"}
        assert b"hunter2" not in same.body
        gone = await api.patch(PATH, {"target": {"url": "https://attacker.example.net/a", "headers": None}})
        assert gone.json["target"] == {"type": "http", "url": "https://attacker.example.net/a"}
        assert gone.headers["tickler-removed"] == "target.headers"


async def test_a_path_says_what_it_takes(api: Api) -> None:
    for method in ("OPTIONS", "POST"):
        allowed = (await api(method, PATH)).headers["allow"]
        assert sorted(allowed.split(", ")) == ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "PUT"]
    assert (await api("OPTIONS", PATH)).headers["accept-patch"] == "application/merge-patch+json, application/json"


@pytest.mark.parametrize("known", ["{}", "W/{}", '"7", {}', "*"])
async def test_what_the_caller_has_already_is_not_sent_again(api: Api, known: str) -> None:
    etag = (await api.put(PATH, DAILY)).headers["etag"]
    same = await api.get(PATH, if_none_match=known.format(etag))
    assert (same.status, same.body, same.headers["etag"]) == (304, b"", etag)
    await api.put(PATH, {**DAILY, "payload": 1})
    assert (await api.get(PATH, if_none_match=etag)).status == 200


async def test_what_has_fired_or_ended_since_is_sent_again(t: Tickler, api: Api, clock: ManualClock) -> None:
    """This makes no new version."""
    put = await api.put(PATH, {"when": "@hourly", "ends_at": "2030-11-20T14:00:00Z"})
    assert put.headers["etag"] == (await api.get(PATH)).headers["etag"]
    seen = [put]
    for _ in range(2):
        clock.advance(3_600)
        assert len(await t.index.claim_due(clock.now_ms())) == 1
        seen.append(await api.get(PATH, if_none_match=seen[-1].headers["etag"]))
    assert [(each.json["state"], each.json["version"]) for each in seen] == [("active", 1), ("active", 1), ("finished", 1)]
    assert len({each.headers["etag"] for each in seen}) == 3
    assert (await api.put(PATH, DAILY, if_match=put.headers["etag"])).status == 200, "which is about what was written"


async def test_a_schedule_that_was_made_anew_is_not_the_one_that_was_read(api: Api, clock: ManualClock) -> None:
    read = (await api.put(PATH, DAILY)).headers["etag"]
    await api.delete(PATH)
    clock.advance(1)
    anew = await api.put(PATH, {**DAILY, "payload": "another's"})
    assert anew.json["version"] == 1
    assert (await api.get(PATH, if_none_match=read)).status == 200
    lost = await api.put(PATH, {**DAILY, "payload": "mine"}, if_match=read)
    assert (lost.status, "was deleted and created again" in lost.json["detail"]) == (412, True)
    assert (await api.delete(PATH, if_match=read)).status == 412
    assert [(await api.post(f"{PATH}/{verb}", if_match=read)).status for verb in ("pause", "resume")] == [412, 412]
    assert (await api.get(PATH)).json["payload"] == "another's"
    assert (await api.put(PATH, DAILY, if_match='"1"')).status == 200, "who asks for a version alone gets that"


async def test_one_of_several_etags_is_enough(api: Api) -> None:
    etags = [(await api.put(PATH, {**DAILY, "payload": number})).headers["etag"] for number in range(3)]
    assert (await api.put(PATH, DAILY, if_match=f'{etags[0]}, "2"')).status == 412
    assert (await api.put(PATH, DAILY, if_match=", ".join(etags))).status == 200
    assert (await api.put(PATH, {**DAILY, "payload": 9}, if_match='"3","4"')).status == 200


async def test_any_version_is_any_also_while_others_write(t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await api.put(PATH, DAILY)
    change = t.store.schedules.change

    async def meanwhile(*args: Any, **kwargs: Any) -> None:
        monkeypatch.setattr(t.store.schedules, "change", change)
        await t.schedules.put(Schedule(owner="u1", key="digest", when="@daily", payload="another's"))
        await change(*args, **kwargs)

    monkeypatch.setattr(t.store.schedules, "change", meanwhile)
    assert (await api.put(PATH, {**DAILY, "payload": "mine"}, if_match="*")).json["version"] == 3


async def test_pausing_and_resuming_change_only_the_version_that_was_read(api: Api) -> None:
    first = (await api.put(PATH, DAILY)).headers["etag"]
    second = (await api.put(PATH, {**DAILY, "payload": 1})).headers["etag"]
    assert (await api.post(f"{PATH}/pause", if_match=first)).status == 412
    paused = await api.post(f"{PATH}/pause", if_match=second)
    assert (paused.status, paused.json["state"]) == (200, "paused")
    assert (await api.post(f"{PATH}/resume", if_match=second)).status == 412
    assert (await api.post(f"{PATH}/resume", if_match="*")).json["state"] == "active"
    assert (await api.post(f"{PATH}/pause", if_match="soon")).field == "if-match"
    refused = await api.post(f"{PATH}/trigger", if_match="*")
    assert (refused.status, refused.field) == (400, "if-match")


async def test_of_two_equal_puts_at_one_instant_the_first_alone_is_new(api: Api) -> None:
    assert [(await api.put(PATH, DAILY)).status for _ in range(3)] == [201, 200, 200]


# What else can be done with one.


async def test_what_is_not_there_is_404_for_every_verb(api: Api) -> None:
    answers = [
        await api.get(PATH),
        await api.delete(PATH),
        await api.get(f"{PATH}/preview"),
        *[await api.post(f"{PATH}/{verb}") for verb in ("pause", "resume", "trigger")],
    ]
    assert {answer.status for answer in answers} == {404}
    assert {answer.body for answer in answers} == {answers[0].body}
    assert (await api.get(f"{PATH}/why")).json["sentence"].startswith("no schedule u1/digest")
    assert (await api.get(f"{PATH}/fires")).json == {"items": [], "next": None}
    assert (await api.post(f"{PATH}/dance")).status == 404


async def test_pausing_and_resuming_take_an_empty_body_and_nothing_else(api: Api) -> None:
    await api.put(PATH, DAILY)
    assert (await api.post(f"{PATH}/pause", {})).json["state"] == "paused"
    assert (await api.post(f"{PATH}/pause")).json["version"] == 2
    assert (await api.post(f"{PATH}/resume", {"why": 1})).status == 400
    assert (await api.delete(f"{PATH}?force=1")).field == "force"
    assert (await api.get(PATH)).json["state"] == "paused"


async def test_a_body_that_is_too_long_is_refused_as_described_also_where_none_is_read(t: Tickler) -> None:
    async with serving(t, ServerSettings(max_body=1_000)) as api:
        await api.put(PATH, DAILY)
        assert (await api("DELETE", PATH, b" " * 2_000)).status == 413
        assert (await api.get(PATH)).status == 200


async def test_what_has_no_target_cannot_be_triggered(api: Api) -> None:
    await api.put(PATH, {"when": "0 9 * * *"})
    refused = await api.post(f"{PATH}/trigger")
    assert (refused.status, refused.field) == (422, "target")


async def test_a_preview_says_the_next_instants_in_the_zone_of_the_schedule(api: Api) -> None:
    await api.put(PATH, {"when": "30 2 * * *", "tz": "Europe/Berlin", "ends_at": "2031-04-01T00:00:00Z"})
    preview = (await api.get(f"{PATH}/preview?n=2&after=2031-03-29T12:00:00%2B01:00")).json
    assert preview["words"]
    assert preview["when"] == "30 2 * * *"
    assert [each["local"] for each in preview["next"]] == ["2031-03-30T03:00:00+02:00", "2031-03-31T02:30:00+02:00"]
    assert preview["next"][0]["marks"]
    assert preview["next"][1]["marks"] == []
    last = (await api.get(f"{PATH}/preview?after=2031-03-31T12:00:00Z")).json
    assert last["next"] == []


async def test_an_expression_can_be_previewed_before_it_is_put(api: Api) -> None:
    found = (await api.get("/v1/preview?when=0+9+*+*+tue&tz=Europe/Paris&n=1")).json
    assert found["next"] == [{"at": 1_921_910_400_000, "local": "2030-11-26T09:00:00+01:00", "marks": []}]
    for query, status, field in (
        ("", 400, "when"),
        ("when=no", 422, "when"),
        ("when=", 422, "when"),
        ("when=@daily&tz=No/Where", 422, "tz"),
        ("when=TZ=Asia/Tokyo+@daily&tz=UTC", 422, "tz"),
        ("when=@daily&n=0", 400, "n"),
        ("when=@daily&n=101", 400, "n"),
        ("when=@daily&after=noon", 422, "after"),
        ("when=@daily&after=12", 422, "after"),
    ):
        refused = await api.get(f"/v1/preview?{query}")
        assert (refused.status, refused.field) == (status, field), query


async def test_an_expression_of_eventbridge_and_a_zone_within_one_are_read_and_shown(api: Api) -> None:
    found = (await api.get("/v1/preview?when=CRON_TZ=Asia/Tokyo+cron(0+9+?+*+2-6+2031)&n=1")).json
    assert found == {
        "when": "cron(0 9 ? * 2-6 2031)",
        "tz": "Asia/Tokyo",
        "words": "at 09:00 on weekdays, in 2031",
        "next": [{"at": 1_924_992_000_000, "local": "2031-01-01T09:00:00+09:00", "marks": []}],
    }
    put = await api.put(PATH, {**DAILY, "when": "cron(0 9 ? * 2-6 2031)"})
    assert (put.status, (await api.get(PATH)).json["when"]) == (201, "cron(0 9 ? * 2-6 2031)")
    over = await api.put(PATH, {**DAILY, "when": "cron(0 9 ? * 2-6 2020)"})
    assert (over.status, over.field) == (422, "when")


async def test_why_looks_at_an_instant_too(api: Api) -> None:
    await api.put(PATH, DAILY)
    assert "is not due yet" in (await api.get(f"{PATH}/why")).json["sentence"]
    at = (await api.get(f"{PATH}/why?at=2030-11-19T08:00:00Z")).json
    assert at["at"] == 1_921_305_600_000
    assert (await api.get(f"{PATH}/why?at=yesterday")).field == "at"


# Lists.


async def test_pages_are_followed_to_the_end_and_nothing_comes_twice(t: Tickler, api: Api) -> None:
    ids = [(f"u{n % 7}", f"k/{n:03}") for n in range(250)]
    await t.schedules.put_many(Schedule(owner=owner, key=key, when="@daily") for owner, key in ids)
    for query in ("", "&owner=u3"):
        found: list[tuple[str, str]] = []
        after = ""
        pages = 0
        while True:
            page = (await api.get(f"/v1/schedules?limit=31{query}{after}")).json
            found += [(each["owner"], each["key"]) for each in page["items"]]
            pages += 1
            if page["next"] is None:
                break
            after = f"&after={quote(page['next'])}"
        expected = sorted(id for id in ids if not query or id[0] == "u3")
        assert found == expected
        assert pages == -(-len(expected) // 31)


async def test_a_page_ends_where_it_becomes_too_large(t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.server.api.schedules.MAX_PAGE_BYTES", 50_000)
    monkeypatch.setattr("tickler.server.api.schedules.READ_TOGETHER", 4)
    sizes = [10, 20_000, 20_000, 20_000, 10, 60_000, 10, 10, 20_000, 10, 10]
    await t.schedules.put_many(
        Schedule(owner="u1", key=f"{n:02}", when="@daily", payload="x" * size) for n, size in enumerate(sizes)
    )
    pages: list[list[int]] = []
    after = ""
    while not pages or after:
        page = (await api.get(f"/v1/schedules?limit=1000{after}")).json
        pages.append([len(each["payload"]) for each in page["items"]])
        after = page["next"] and f"&after={quote(page['next'])}"
    assert pages == [[10, 20_000, 20_000], [20_000, 10], [60_000], [10, 10, 20_000, 10, 10]]


async def test_what_is_not_in_the_index_is_looked_for_by_those_who_operate_it(t: Tickler, api: Api) -> None:
    assert (await api.get("/v1/schedules?state=unindexed")).status == 200
    _, text = await t.tokens.create(["read"], owner="u1")
    refused = await api.bearing(text).get("/v1/schedules?state=unindexed")
    assert (refused.status, refused.field) == (422, "state")


async def test_lists_are_narrowed_by_owner_prefix_and_state(t: Tickler, api: Api) -> None:
    for key in ("a/1", "a/2", "ab", "b"):
        await t.schedules.put(Schedule(owner="u1", key=key, when="@daily"))
    await t.schedules.put(Schedule(owner="u2", key="a/9", when="@daily"))
    await t.schedules.pause("u1", "a/2")

    async def keys(query: str) -> list[str]:
        return [each["key"] for each in (await api.get(f"/v1/schedules?{query}")).json["items"]]

    assert await keys("owner=u1") == ["a/1", "a/2", "ab", "b"]
    assert await keys("owner=u1&key_prefix=a%2F") == ["a/1", "a/2"]
    assert await keys("owner=u1&key_prefix=a&state=active") == ["a/1", "ab"]
    assert await keys("state=paused") == ["a/2"]
    assert await keys("owner=nobody") == []
    assert await keys("owner=u1&key_prefix=") == ["a/1", "a/2", "ab", "b"]


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("limit=0", 400, "limit"),
        ("limit=1001", 400, "limit"),
        ("limit=-1", 400, "limit"),
        ("limit=1e2", 400, "limit"),
        ("limit=%D9%A1", 400, "limit"),
        ("limit=", 400, "limit"),
        ("limit=99999999999999999999", 400, "limit"),
        ("state=asleep", 400, "state"),
        ("state=", 400, "state"),
        ("colour=red", 400, "colour"),
        ("limit=1&limit=1", 400, "limit"),
        ("owner=u1&owner=u2", 400, "owner"),
        ("key_prefix=a", 422, "key_prefix"),
        ("owner=", 422, "owner"),
        ("owner=%00", 422, "owner"),
        ("after=nonsense", 422, "after"),
        ("after=", 422, "after"),
        ("owner=%FF", 400, None),
        ("after=%F0%9F%98%80", 422, "after"),
    ],
)
async def test_parameters_that_do_not_fit_are_refused_by_name(api: Api, query: str, status: int, field: str | None) -> None:
    refused = await api.get(f"/v1/schedules?{query}")
    assert (refused.status, refused.field) == (status, field)


# Who did it.


async def test_every_change_is_remembered_with_who_made_it(t: Tickler, api: Api) -> None:
    await api.put(PATH, {**DAILY, "target": {"type": "python", "handler": "echo"}})
    await api.patch(PATH, {"tz": "UTC", "payload": 1})
    for verb in ("pause", "resume", "trigger"):
        await api.post(f"{PATH}/{verb}")
    await api.delete(PATH)
    await api.delete(PATH)
    deeds = (await api.get("/v1/audit?owner=u1")).json["items"]
    assert sorted(deed["action"] for deed in deeds) == ["deleted", "patched", "paused", "put", "resumed", "triggered"]
    assert [deed["detail"] for deed in deeds if deed["action"] == "patched"] == ["payload, tz: version 2"]
    assert {(deed["by"], deed["owner"], deed["key"]) for deed in deeds} == {("local", "u1", "digest")}
    assert (await t.audit.list()).items == (await t.audit.list(owner="u1")).items


async def test_targets_other_than_http_are_kept_as_they_are(api: Api) -> None:
    arn = "arn:aws:sqs:eu-west-1:123456789012:queue"
    for target in ({"type": "python", "handler": "digest"}, {"type": "sqs", "arn": arn}):
        assert (await api.put(PATH, {**DAILY, "target": target})).json["target"] == target


async def test_a_target_that_would_be_refused_is_warned_of_when_it_is_put_and_previewed(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TICKLER_ALLOW_NETWORKS", raising=False)
    url = "http://127.0.0.1:8000/hook"
    put = await api.put(PATH, {**DAILY, "target": url})
    assert put.status == 201
    (warning,) = put.json["warnings"]
    assert "set TICKLER_ALLOW_NETWORKS=127.0.0.0/8 where the worker runs" in warning
    assert "warnings" not in (await api.get(PATH)).json
    assert (await api.get(f"/v1/preview?when=@daily&target={url}")).json["warnings"] == [warning]
    for harmless in ("https://example.org/", "http://", "x"):
        assert "warnings" not in (await api.get(f"/v1/preview?when=@daily&target={harmless}")).json
    monkeypatch.setenv("TICKLER_ALLOW_NETWORKS", "127.0.0.0/8")
    assert "warnings" not in (await api.put(PATH, {**DAILY, "target": url})).json
