"""`tickler fires`, `retry` and `why`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tickler import GiveUp, ManualClock, Policy, PythonTarget, RetryLater, Schedule, connect_sync

from .conftest import Here
from .test_schedules import NEW_YEAR, deeds

START_MS = 1_893_456_000_000  # 2030-01-01T00:00:00Z
MINUTE_MS = 60_000


def give_up(fire: object) -> None:
    raise GiveUp("no such user\nat all")


def give_up_fires(url: str, *keys: str, owner: str = "u1") -> list[str]:
    """Dead fires of these schedules; their ids."""
    with connect_sync(url) as t:
        t.handler("h")(give_up)
        for key in keys:
            t.schedules.put(Schedule(owner=owner, key=key, when=NEW_YEAR, target=PythonTarget("h")))
            t.trigger(owner, key)
        t.tick()
        dead = {fire.key: fire.id for fire in t.fires.list(state="dead", owner=owner).items}
    return [dead[key] for key in keys]


def test_dead_fires_are_shown_with_the_reason(here: Here, url: str) -> None:
    (id,) = give_up_fires(url, "k")
    done = here("fires", "--state", "dead")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].split() == ["fire", "owner", "key", "nominal", "(UTC)", "now"]
    assert done.lines[1].split()[:3] == [id, "u1", "k"]
    assert done.lines[1].endswith("  dead after attempt 1: no such user\\nat all")
    answer = here("fires", "--state", "dead", "--json").json
    assert [(fire["id"], fire["state"]) for fire in answer["items"]] == [(id, "dead")]


def test_a_list_says_what_is_failing_and_shows_it_alone_where_that_is_asked_for(here: Here, url: str) -> None:
    give_up_fires(url, "broken", "off")
    assert here("list", "--failing", "--owner", "u2").err == "u2 has no failing schedules\n"
    here("pause", "u1", "off")
    with connect_sync(url) as t:
        t.schedules.put(Schedule(owner="u1", key="sound", when=NEW_YEAR, target=PythonTarget("echo")))
        t.trigger("u1", "sound")
        t.tick()
    done = here("list")
    columns = [re.split("  +", line) for line in done.lines]
    assert (columns[0][4], columns[0][-1]) == ("state", "last result (UTC)")
    assert [row[4] for row in columns[1:]] == ["failing", "failing, paused", "active"]
    assert [row[-1].partition(" ")[0] for row in columns[1:]] == ["failed", "failed", "delivered"]
    assert [item["key"] for item in here("list", "--failing", "--json").json["items"]] == ["broken", "off"]
    assert [item["key"] for item in here("list", "--failing", "--state", "paused", "--json").json["items"]] == ["off"]
    shown = here("show", "u1", "broken", "--json").json
    assert (shown["failing"], shown["last"]["result"], shown["state"]) == (True, "failed", "active")
    assert "  state     failing" in here("show", "u1", "broken").lines
    by_key = {item["key"]: (item["failing"], item["last"]["result"]) for item in here("list", "--json").json["items"]}
    assert by_key == {"broken": (True, "failed"), "off": (True, "failed"), "sound": (False, "delivered")}


def test_fires_are_those_that_are_open_unless_asked_otherwise(here: Here, url: str) -> None:
    give_up_fires(url, "k")
    assert here("fires").err == "no open fires\n"
    here("trigger", "u1", "k")
    assert len(here("fires", "--json").json["items"]) == 1
    assert here("fires", "--owner", "u2", "--json").json == {"items": [], "next": None}
    assert len(here("fires", "--owner", "u1", "--key", "k", "--json").json["items"]) == 1


def test_the_history_of_a_schedule_is_shown_page_by_page_and_outlives_it(here: Here, url: str) -> None:
    give_up_fires(url, "k")
    here("retry", "--all", "--yes")
    here("delete", "u1", "k")
    history = ("fires", "--history", "--owner", "u1", "--key", "k")
    done = here(*history)
    assert done.lines[0].split() == ["nominal", "(UTC)", "outcome", "attempt", "late", "answer", "detail"]
    assert [line.split()[2] for line in done.lines[1:]] == ["cancelled", "retried", "failed"]
    first = here(*history, "--limit", "1")
    cursor = first.err.removeprefix("more: --after ").strip()
    rest = here(*history, "--after", cursor, "--json").json
    assert [entry["happened"] for entry in rest["items"]] == ["retried", "failed"]


def test_skipped_instants_say_how_many_and_by_which_rule(here: Here, file_url: str) -> None:
    clock = ManualClock(START_MS)
    with connect_sync(file_url, clock=clock) as t:
        t.handler("h")(lambda fire: None)
        t.schedules.put(
            Schedule(owner="u1", key="k", when="* * * * *", target=PythonTarget("h"), policy=Policy(missed="skip", grace=1))
        )
        clock.advance(182)
        t.tick()
    done = here("fires", "--history", "--owner", "u1", "--key", "k")
    assert done.lines[1].startswith("2030-01-01 00:01:00  skipped")
    assert done.lines[1].endswith("3 instants to 2030-01-01 00:03:00, by the missed policy")


def test_what_is_postponed_says_until_when_and_why(here: Here, file_url: str) -> None:
    clock = ManualClock(START_MS)

    def later(fire: object) -> None:
        raise RetryLater(after=600, reason="the bank\nis closed")

    with connect_sync(file_url, clock=clock) as t:
        t.handler("h")(later)
        t.schedules.put(Schedule(owner="u1", key="k", when="* * * * *", target=PythonTarget("h")))
        clock.advance(60)
        t.tick()
    done = here("fires", "--owner", "u1", "--key", "k")
    assert done.lines[1].endswith("  postponed until 2030-01-01 00:11:00 UTC: the bank\\nis closed")
    done = here("fires", "--history", "--owner", "u1", "--key", "k")
    assert done.lines[1].startswith("2030-01-01 00:01:00  postponed  1")
    assert done.lines[1].endswith("until 2030-01-01 00:11:00 UTC: the bank\\nis closed")
    shown = here("show", "u1", "k")
    assert "postponed until 2030-01-01 00:11:00 UTC" in shown.out
    shown = here("show", "u1", "k", "--json").json
    assert (shown["failing"], shown["last"]["result"]) == (False, "postponed")
    (entry,) = shown["history"]
    assert (entry["happened"], entry["until_at"], entry["attempt"]) == ("postponed", START_MS + 11 * MINUTE_MS, 1)


def test_the_history_is_that_of_one_schedule(here: Here, file_url: str) -> None:
    done = here("fires", "--history", "--owner", "u1")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    here("add", "u1", "k", NEW_YEAR)
    done = here("fires", "--history", "--owner", "u1", "--key", "k")
    assert (done.code, done.err) == (0, "no history of u1/k\n")


# fires --cancel


def test_fires_that_nobody_wants_are_cancelled_by_their_ids(here: Here, url: str) -> None:
    first, second, third = give_up_fires(url, "a", "b", "c")
    assert here("fires", "--cancel", first, second).out == f"{first} cancelled\n{second} cancelled\n"
    done = here("fires", "--cancel", third, "fire_nothing", "--json")
    assert (done.code, done.json) == (3, {"cancelled": 1, "ids": [third], "refused": ["fire_nothing"]})
    assert done.err.startswith("tickler: no fire fire_nothing to cancel: see `tickler fires`")
    assert here("fires", "--state", "dead", "--json").json["items"] == []
    assert deeds(url) == [("ada", "cancelled", "u1", key, id) for key, id in (("a", first), ("b", second), ("c", third))]
    with connect_sync(url) as t:
        entry = t.fires.history("u1", "a").items[0]
        assert (entry.happened, entry.detail) == ("cancelled", "by ada")


@pytest.mark.parametrize("arguments", [["--cancel"], ["fire_1"], ["--cancel", "fire_1", "--owner", "u1"]])
def test_what_to_cancel_must_be_named(here: Here, file_url: str, arguments: list[str]) -> None:
    done = here("fires", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


# retry


def test_dead_fires_are_sent_again_by_their_ids(here: Here, url: str) -> None:
    first, second, third = give_up_fires(url, "a", "b", "c")
    assert here("retry", first, second).out == f"{first} queued for delivery\n{second} queued for delivery\n"
    assert here("retry", third, "--json").json == {"retried": 1, "ids": [third], "refused": []}
    assert here("fires", "--state", "dead", "--json").json["items"] == []
    assert deeds(url) == [("ada", "retried", "u1", key, id) for key, id in (("a", first), ("b", second), ("c", third))]
    with connect_sync(url) as t:
        assert t.fires.history("u1", "a").items[0].detail == "by ada"


def test_one_that_is_not_dead_does_not_stop_the_others(here: Here, url: str) -> None:
    first, second = give_up_fires(url, "a", "b")
    done = here("retry", first, "fire_nothing", second)
    assert done.code == 3
    assert done.out == f"{first} queued for delivery\n{second} queued for delivery\n"
    assert done.err == "tickler: no dead fire fire_nothing: see `tickler fires --state dead`\n"
    done = here("retry", first, "--json")
    assert (done.code, done.json) == (3, {"retried": 0, "ids": [], "refused": [first]})


@pytest.mark.parametrize(
    ("arguments", "said", "left"),
    [
        ([], "4 dead fires", 0),
        (["--owner", "u1"], "3 dead fires of u1", 1),
        (["--owner", "u1", "--key", "a"], "1 dead fire of u1/a", 3),
    ],
)
def test_all_of_them_are_counted_before_they_are_sent_again(
    here: Here, file_url: str, arguments: list[str], said: str, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickler.cli.commands.retry.PAGE", 2)
    give_up_fires(file_url, "a", "b", "c")
    give_up_fires(file_url, "a", owner="u2")
    done = here("retry", "--all", *arguments)
    assert (done.code, done.err) == (0, f"{said}\n")
    assert done.out == ("1 fire queued for delivery\n" if left == 3 else f"{4 - left} fires queued for delivery\n")
    assert len(here("fires", "--state", "dead", "--json").json["items"]) == left
    assert deeds(file_url)[-1][1] == "retried all"


def test_when_none_is_dead_none_is_sent_and_nobody_is_asked(here: Here, file_url: str) -> None:
    here("add", "u1", "k", NEW_YEAR)
    assert here("retry", "--all") == (0, "0 fires queued for delivery\n", "")
    assert here("retry", "--all", "--json").json == {"retried": 0}


@pytest.mark.parametrize("arguments", [[], ["fire_1", "--all"], ["fire_1", "--owner", "u1"]])
def test_what_to_send_again_must_be_said_in_one_way(here: Here, file_url: str, arguments: list[str]) -> None:
    done = here("retry", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


# why


def facts(answer: Any) -> dict[str, str]:
    return {fact["about"]: fact["says"] for fact in answer["facts"]}


def test_why_begins_with_one_sentence_and_marks_what_hinders(here: Here, url: str) -> None:
    here("add", "u1", "k", NEW_YEAR, "--handler", "h")
    done = here("why", "u1", "k")
    assert done.code == 0
    assert done.lines[0].startswith("u1/k is not due yet: it fires next at 2035-01-01 09:00:00 UTC, in ")
    assert done.lines[1] == ""
    assert [line.split()[:2] for line in done.lines[2:]] == [
        ["about", "fact"],
        ["definition", "at(2035-01-01T09:00:00Z)"],
        ["index", "it"],
        ["history", "no"],
        ["!", "workers"],
    ]


def test_why_names_the_command_that_sends_a_dead_fire_again(here: Here, url: str) -> None:
    (id,) = give_up_fires(url, "k")
    sentence = here("why", "u1", "k").lines[0]
    assert f" is dead (no such user\\nat all): retry it with `tickler retry {id}`; it fires next at " in sentence
    assert here("retry", id).code == 0


def test_why_explains_an_instant_in_the_zone_of_the_schedule_or_with_an_offset(here: Here, file_url: str) -> None:
    here("add", "u1", "k", NEW_YEAR, "--tz", "Asia/Tokyo", "--handler", "h")
    for at in ("2035-01-01T09:00:00", "2035-01-01T00:00:00Z"):
        answer = here("why", "u1", "k", "--at", at, "--json").json
        assert answer["at"] == 2_051_222_400_000
        assert answer["sentence"].startswith("2035-01-01 09:00:00 Asia/Tokyo (00:00 UTC) is in the future")
        assert "is an instant of" in facts(answer)["instant"]


def test_why_still_knows_of_a_schedule_that_is_gone(here: Here, file_url: str) -> None:
    give_up_fires(file_url, "k")
    here("delete", "u1", "k")
    assert here("why", "u1", "k").lines[0].startswith("schedule u1/k no longer exists")


def test_an_instant_that_is_none_is_refused(here: Here, file_url: str) -> None:
    here("add", "u1", "k", NEW_YEAR)
    done = here("why", "u1", "k", "--at", "nine")
    assert (done.code, done.out) == (1, "")
    assert done.err == "tickler: at 'nine' is not a date and time: write '2026-03-15T00:00:00'\n"
