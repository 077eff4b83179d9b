"""`tickler add`, `update`, `list`, `show`, `pause`, `resume`, `trigger` and `delete`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tickler import Cron, HttpTarget, LambdaTarget, Policy, PythonTarget, Schedule, StoredSchedule, Weekly, connect_sync
from tickler.access.audit_log import AuditEntry

from .conftest import Here

NEW_YEAR = "at(2035-01-01T09:00:00)"
QUEUE = "arn:aws:lambda:eu-west-1:123456789012:function:f"


def stored(url: str, owner: str = "u1", key: str = "k") -> StoredSchedule:
    with connect_sync(url, create=False) as t:
        found = t.schedules.get(owner, key)
    assert isinstance(found, StoredSchedule)
    return found


def deeds(url: str) -> list[tuple[object, ...]]:
    with connect_sync(url, create=False) as t:
        found: list[AuditEntry] = t.audit.list().items
    return [(deed.by, deed.action, deed.owner, deed.key, deed.detail) for deed in reversed(found)]


# add


def test_add_puts_a_schedule_and_shows_it_with_its_next_fires(here: Here, url: str) -> None:
    done = here(
        "add", "u1", "k", NEW_YEAR, "--tz", "Europe/Paris", "--target", "https://example.org/hook", "--payload", '{"n": 1}'
    )
    assert done.code == 0
    assert done.lines[:5] == [
        "u1/k",
        "  when      at(2035-01-01T09:00:00) in Europe/Paris",
        "            once, on 1 January 2035 at 09:00",
        "  state     active",
        "  target    https://example.org/hook",
    ]
    assert done.lines[-2:] == [
        "Europe/Paris                    UTC",
        "Mon 2035-01-01 09:00:00 +01:00  2035-01-01 08:00:00",
    ]
    schedule = stored(url)
    assert (schedule.target, schedule.payload) == (HttpTarget("https://example.org/hook"), {"n": 1})
    assert deeds(url) == [("ada", "put", "u1", "k", "version 1")]


def test_every_field_of_a_schedule_can_be_said(here: Here, file_url: str) -> None:
    words = "--delivery at-least-once --missed all --overlap wait --spread 5 --grace 7 --max-catchup 9 --attempts 3 --timeout 2.5"
    bounds = ("--starts-at", "2030-01-01T00:00:00", "--ends-at", "2031-01-01T00:00:00Z")
    done = here("add", "u1", "k", "0 9 * * *", "--tz", "Asia/Tokyo", "--handler", "h", *words.split(), *bounds, "--delete-after")
    assert done.code == 0, done.err
    policy = Policy(missed="all", overlap="wait", spread=5, grace=7, max_catchup=9, attempts=3, timeout=2.5)
    assert stored(file_url).declared() == Schedule(
        owner="u1",
        key="k",
        when="0 9 * * *",
        tz="Asia/Tokyo",
        target=PythonTarget("h"),
        policy=policy,
        starts_at=1_893_423_600_000,  # midnight in Tokyo
        ends_at=1_924_992_000_000,
        delete_after=True,
    )


def test_a_policy_is_json_and_single_options_go_before_it(here: Here, file_url: str) -> None:
    here("add", "u1", "k", "@daily", "--policy", '{"missed": "skip", "attempts": 2, "backoff": [1, 2]}', "--attempts", "4")
    assert stored(file_url).policy == Policy(missed="skip", attempts=4, backoff=[1, 2])


def test_when_and_target_may_be_json_too(here: Here, file_url: str) -> None:
    weekly = '{"weekly": {"tue": {"time": "09:00"}, "mon": {"time": null}}}'
    assert here("add", "u1", "k", weekly, "--target", f'{{"type": "lambda", "arn": "{QUEUE}"}}').code == 0
    schedule = stored(file_url)
    assert (schedule.when, schedule.target) == (Weekly({"tue": "09:00"}), LambdaTarget(QUEUE))


def test_what_is_put_paused_sleeps_and_shows_what_it_would_do(here: Here, file_url: str) -> None:
    done = here("add", "u1", "k", NEW_YEAR, "--paused")
    assert done.lines[-3:] == ["if it were not paused:", "UTC", "Mon 2035-01-01 09:00:00 +00:00"]
    assert stored(file_url).state == "paused"


def test_add_can_be_held_to_the_version_that_was_seen(here: Here, url: str) -> None:
    assert here("add", "u1", "k", "@daily", "--if-version", "0").code == 0
    assert here("add", "u1", "k", "@hourly", "--if-version", "1", "--json").json["version"] == 2
    done = here("add", "u1", "k", "@weekly", "--if-version", "1")
    assert (done.code, done.out) == (1, "")
    assert done.err == "tickler: u1/k is at version 2, not at version 1: read it again and repeat the change\n"


def test_add_refuses_a_key_that_is_there_and_says_what_to_do(here: Here, url: str) -> None:
    here("add", "u1", "k", "@daily", "--handler", "h", "--payload", "7")
    before = stored(url)
    done = here("add", "u1", "k", "@hourly")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "tickler: u1/k already exists, at version 1: change it with `tickler update u1 k …`, or pass --replace to replace it\n"
    )
    assert stored(url) == before
    assert len(deeds(url)) == 1


def test_add_replaces_all_of_it_when_told_to_and_says_what_is_gone(here: Here, file_url: str) -> None:
    here("add", "u1", "k", "@daily", "--tz", "Europe/Paris", "--handler", "h", "--payload", "7", "--attempts", "3")
    done = here("add", "u1", "k", "@hourly", "--tz", "Europe/Paris", "--replace")
    assert done.err == "tickler: removed from u1/k: target, payload, policy\n"
    assert (stored(file_url).target, stored(file_url).version) == (None, 2)
    here("add", "u1", "k", "@hourly", "--handler", "h", "--replace")
    assert here("add", "u1", "k", "@hourly", "--if-version", "3", "--json").json["removed"] == ["target"]


# update


ADD_TO_UPDATE = (
    *("add", "u1", "k", "0 9 * * *", "--tz", "Europe/Paris", "--handler", "h"),
    *("--payload", '{"a": 1, "b": 2}', "--attempts", "3"),
)


def test_update_changes_what_is_named_and_keeps_the_rest(here: Here, url: str) -> None:
    here(*ADD_TO_UPDATE)
    before = stored(url).declared()
    done = here("update", "u1", "k", "--when", "0 10 * * *")
    assert (done.code, done.err, done.lines[1]) == (0, "", "  when      0 10 * * * in Europe/Paris")
    assert stored(url).declared() == replace(before, when=Cron("0 10 * * *", tz="Europe/Paris"))
    assert deeds(url)[-1] == ("ada", "patched", "u1", "k", "when: version 2")
    remembered = len(deeds(url))
    assert here("update", "u1", "k", "--when", "0 10 * * *").code == 0
    assert (stored(url).version, len(deeds(url))) == (2, remembered), "nothing has changed"


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        (["--tz", "Asia/Tokyo"], {"when": Cron("0 9 * * *", tz="Asia/Tokyo"), "tz": "Asia/Tokyo"}),
        (["--when", '{"weekly": {"tue": {"time": "09:00"}}}'], {"when": Weekly({"tue": "09:00"}, tz="Europe/Paris")}),
        (["--target", "https://example.org/hook"], {"target": HttpTarget("https://example.org/hook")}),
        (["--handler", "other"], {"target": PythonTarget("other")}),
        (["--payload", '{"a": null, "c": 3}'], {"payload": {"b": 2, "c": 3}}),
        (["--payload", "null"], {"payload": None}),
        (["--attempts", "5", "--policy", '{"spread": 9}'], {"policy": Policy(attempts=5, spread=9)}),
        (["--policy", '{"attempts": null}'], {"policy": Policy()}),
        (["--starts-at", "2035-01-01", "--delete-after"], {"starts_at": 2_051_218_800_000, "delete_after": True}),
        (["--remove", "target", "--remove", "payload"], {"target": None, "payload": None}),
    ],
    ids=str,
)
def test_each_part_can_be_updated(here: Here, file_url: str, options: list[str], changed: dict[str, object]) -> None:
    here(*ADD_TO_UPDATE)
    before = stored(file_url).declared()
    assert here("update", "u1", "k", *options).code == 0
    assert stored(file_url).declared() == replace(before, **changed)


def test_update_says_what_is_gone_and_can_be_held_to_a_version(here: Here, file_url: str) -> None:
    here("add", "u1", "k", "@daily", "--handler", "h")
    assert here("update", "u1", "k", "--remove", "target", "--if-version", "1").err == "tickler: removed from u1/k: target\n"
    done = here("update", "u1", "k", "--payload", "7", "--if-version", "1", "--json")
    assert (done.code, done.err) == (1, "tickler: u1/k is at version 2, not at version 1: read it again and repeat the change\n")


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ([], 2, "nothing to change: pass --when, --target"),
        (["--payload", "7", "--remove", "payload"], 2, "payload is both set and removed"),
        (["--target", "https://example.org", "--handler", "h"], 2, "a schedule has one target"),
        (["--when", "0 25 * * *"], 1, "hour"),
    ],
)
def test_an_update_that_makes_no_sense_is_refused(here: Here, file_url: str, options: list[str], code: int, says: str) -> None:
    here("add", "u1", "k", "@daily")
    done = here("update", "u1", "k", *options)
    assert (done.code, says in done.err) == (code, True)
    assert stored(file_url).version == 1


@pytest.mark.parametrize("options", [["--payload", "7"], ["--starts-at", "2035-01-01"]])
def test_an_update_of_what_is_not_there_says_where_to_look(here: Here, file_url: str, options: list[str]) -> None:
    here("add", "u1", "other", "@daily")
    done = here("update", "u1", "k", *options)
    assert (done.code, done.err) == (3, "tickler: no schedule u1/k: see `tickler list --owner u1`\n")


def test_add_answers_in_json_with_what_lies_ahead(here: Here, file_url: str) -> None:
    answer = here("add", "u1", "k", NEW_YEAR, "--json").json
    assert (answer["owner"], answer["key"], answer["when"], answer["state"]) == ("u1", "k", "at(2035-01-01T09:00:00Z)", "active")
    assert answer["next_fire_at"] == 2_051_254_800_000
    assert answer["upcoming"] == [{"at": 2_051_254_800_000, "local": "2035-01-01T09:00:00+00:00", "marks": []}]


def test_what_its_spread_adds_is_shown(here: Here, file_url: str) -> None:
    done = here("add", "u1", "k", NEW_YEAR, "--policy", '{"spread": 3600}')
    (due,) = (line for line in done.lines if line.startswith("  due "))
    assert due.endswith(" of spread")
    assert done.lines[-1] == "Mon 2035-01-01 09:00:00 +00:00"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["0 25 * * *"], "in '0 25 * * *', hour '25' is invalid: write 0 to 23"),
        (["@daily", "--tz", "Europe/Pariss"], "did you mean 'Europe/Paris'?"),
        (["@daily", "--payload", "{n: 1}"], "payload: is not JSON: "),
        (["@daily", "--payload", '{"n": 1, "n": 2}'], "payload: 'n' occurs twice"),
        (["@daily", "--payload", "\udcff"], "payload: byte 0 is not UTF-8"),
        (["@daily", "--policy", "[]"], "policy: is a list"),
        (["@daily", "--policy", '{"retries": 3}'], "policy.retries: unknown field"),
        (["@daily", "--attempts", "0"], "policy.attempts: 0 is not a whole number from 1"),
        (["@daily", "--target", "example.org"], "target.url: must start with http:// or https://"),
        (["@daily", "--starts-at", "tomorrow"], "starts_at 'tomorrow' is not a date and time"),
        (
            ["@daily", "--ends-at", "2011-12-30T09:00", "--tz", "Pacific/Apia"],
            "ends_at '2011-12-30T09:00' is on a date that Pacific/Apia skipped",
        ),
        (["at(2001-01-01T00:00:00)"], "has passed or lies before its start; to store it anyway, add it with --paused"),
        (["2035-01-01 09:00"], "is a date: for one instant write 'at(2035-01-01T09:00)'"),
        (["TZ=Asia/Tokyo @daily", "--tz", "UTC"], "names the zone 'Asia/Tokyo', and tz is 'UTC'"),
    ],
    ids=lambda value: " ".join(value)[:40].encode("ascii", "replace").decode() if isinstance(value, list) else "",
)
def test_what_is_refused_is_one_line_with_the_reason(here: Here, file_url: str, arguments: list[str], said: str) -> None:
    done = here("add", "u1", "k", *arguments)
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert [line for line in done.err.splitlines() if "created the Tickler tables in" not in line] == [done.err.splitlines()[-1]]


def test_a_when_that_the_shell_took_apart_is_to_be_quoted(here: Here, file_url: str) -> None:
    for arguments in (
        ["preview", "0", "9", "*", "*", "*"],
        ["preview", "*/5", "notes.txt", "setup.py", "--tz", "Europe/Paris"],
        ["add", "u1", "k", "0", "9", "*", "*", "1-5", "--handler", "h"],
    ):
        done = here(*arguments)
        assert (done.code, done.out) == (2, "")
        assert "quote WHEN: '0 9 * * *'" in done.err
    assert "unexpected extra argument" in here("list", "u1").err


@pytest.mark.parametrize(
    "arguments", [["--when", "0", "9", "*", "*", "*"], ["0 9 * * *"]], ids=["taken apart", "without the option"]
)
def test_an_update_takes_when_as_an_option_and_says_so(here: Here, file_url: str, arguments: list[str]) -> None:
    here("add", "u1", "k", "@daily")
    done = here("update", "u1", "k", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "quote the value of --when: --when '0 9 * * *'" in done.err


def test_bounds_are_read_in_the_zone_that_the_expression_names(here: Here, file_url: str) -> None:
    done = here("add", "u1", "k", "TZ=Asia/Tokyo @daily", "--handler", "h", "--starts-at", "2035-01-01T00:00:00", "--json")
    assert (done.code, done.json["tz"]) == (0, "Asia/Tokyo")
    assert done.json["upcoming"][0]["local"] == "2035-01-01T00:00:00+09:00"


def test_two_targets_are_a_mistake_in_the_command(here: Here, file_url: str) -> None:
    done = here("add", "u1", "k", "@daily", "--target", "https://example.org", "--handler", "h")
    assert (done.code, done.out) == (2, "")
    assert done.err == "tickler: a schedule has one target: pass --target or --handler, not both\n"


def test_a_url_is_no_handlers_name(here: Here, file_url: str) -> None:
    done = here("add", "u1", "k", "@daily", "--handler", "https://example.org/hook")
    assert (done.code, done.err) == (2, "tickler: --handler takes the name of a handler: pass a URL with --target\n")


# list and show


@pytest.fixture
def three(here: Here, url: str) -> str:
    """Two of u1's, one of them paused, and one of u2's."""
    with connect_sync(url) as t:
        t.schedules.put_many(
            [
                Schedule(owner="u1", key="a", when=NEW_YEAR, tz="Europe/Paris"),
                Schedule(owner="u1", key="b/c", when="0 9 * * tue", enabled=False),
                Schedule(owner="u2", key="a", when=NEW_YEAR),
            ]
        )
    return url


def test_list_shows_columns_that_are_as_wide_as_they_have_to_be(here: Here, three: str) -> None:
    done = here("list")
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        "owner  key  when                      zone          state   due (UTC)            last result (UTC)",
        "u1     a    at(2035-01-01T09:00:00)   Europe/Paris  active  2035-01-01 08:00:00",
        "u1     b/c  0 9 * * tue               UTC           paused",
        "u2     a    at(2035-01-01T09:00:00Z)  UTC           active  2035-01-01 09:00:00",
    ]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], ["u1/a", "u1/b/c", "u2/a"]),
        (["--owner", "u1"], ["u1/a", "u1/b/c"]),
        (["--owner", "u1", "--key-prefix", "b"], ["u1/b/c"]),
        (["--state", "paused"], ["u1/b/c"]),
        (["--owner", "u9"], []),
    ],
)
def test_list_shows_those_that_were_asked_for(here: Here, three: str, arguments: list[str], found: list[str]) -> None:
    answer = here("list", *arguments, "--json").json
    assert [f"{each['owner']}/{each['key']}" for each in answer["items"]] == found
    assert answer["next"] is None


def test_a_long_list_is_read_page_by_page(here: Here, three: str) -> None:
    first = here("list", "--limit", "2")
    assert first.lines[-1].startswith("u1     b/c")
    cursor = first.err.removeprefix("more: --after ").strip()
    assert [each["owner"] for each in here("list", "--after", cursor, "--json").json["items"]] == ["u2"]


def test_an_empty_list_says_so_beside_the_answer(here: Here, three: str) -> None:
    done = here("list", "--owner", "u9")
    assert (done.code, done.out, done.err) == (0, "", "u9 has no schedules\n")


def test_an_empty_list_names_what_was_asked_for(here: Here, three: str) -> None:
    for arguments, said in {
        ("--failing",): "no failing schedules\n",
        ("--failing", "--owner", "u2"): "u2 has no failing schedules\n",
        ("--failing", "--owner", "u1", "--state", "paused"): "u1 has no failing paused schedules\n",
        ("--owner", "u1", "--key-prefix", "x"): "u1 has no schedules whose key starts with x\n",
        ("--state", "finished"): "no finished schedules\n",
    }.items():
        assert here("list", *arguments).err == said


def test_a_page_behind_the_last_one_says_that_there_are_no_more(here: Here, file_url: str) -> None:
    for key in ("a", "b"):
        here("add", "u1", key, NEW_YEAR)
    cursor = here("list", "--limit", "1").err.removeprefix("more: --after ").strip()
    here("delete", "u1", "b", "--yes")
    assert here("list", "--owner", "u1", "--after", cursor).err == "u1 has no more schedules\n"


def test_show_tells_all_there_is_to_know(here: Here, url: str) -> None:
    with connect_sync(url) as t:
        t.handler("h")(lambda fire: "thanks\x1b[2J")
        t.schedules.put(Schedule(owner="u1", key="k", when=NEW_YEAR, target=PythonTarget("h"), payload="\x9b31m"))
        t.trigger("u1", "k")
        t.tick()
        t.trigger("u1", "k")
        history = t.fires.history("u1", "k").items
    done = here("show", "u1", "k")
    assert done.code == 0
    assert "  target    handler h" in done.lines
    assert '  payload   "\\x9b31m"' in done.lines  # nothing that a terminal would obey
    fires, last = done.lines.index("undelivered:"), done.lines.index("history:")
    assert done.lines[fires + 1].split() == ["fire", "owner", "key", "nominal", "(UTC)", "now"]
    assert " open, next attempt " in done.lines[fires + 2]
    assert done.lines[last + 2].split()[2:4] == ["delivered", "1"]
    assert done.lines[last + 2].endswith("thanks\\x1b[2J")
    answer = here("show", "u1", "k", "--json").json
    assert answer["words"] == "once, on 1 January 2035 at 09:00"
    assert [fire["state"] for fire in answer["fires"]] == ["open"]
    assert [entry["at"] for entry in answer["history"]] == [entry.at for entry in history]


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine is in Tokyo."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_fires_are_shown_where_the_schedule_is_and_where_the_machine_is(here: Here, three: str, tokyo: None) -> None:
    assert here("show", "u1", "a").lines[-2:] == [
        "Europe/Paris                    UTC                  local",
        "Mon 2035-01-01 09:00:00 +01:00  2035-01-01 08:00:00  Mon 2035-01-01 17:00:00 +09:00",
    ]


def test_an_unreadable_schedule_is_shown_with_the_reason(here: Here, file_url: str) -> None:
    here("add", "u1", "k", "@daily")
    connection = sqlite3.connect(file_url.removeprefix("sqlite:///"))
    connection.execute("UPDATE tickler_schedules SET when_text = 'phase(moon)'")
    connection.commit()
    connection.close()
    done = here("show", "u1", "k")
    assert done.code == 0
    assert done.lines[2].startswith("            unreadable: ")


# pause, resume, trigger, delete


def test_a_schedule_is_paused_with_a_reason_and_resumed(here: Here, url: str) -> None:
    here("add", "u1", "k", NEW_YEAR)
    assert here("pause", "u1", "k", "--reason", "on holiday", "--by", "grace").out == "u1/k paused\n"
    assert "  state     paused: on holiday" in here("show", "u1", "k").lines
    assert here("resume", "u1", "k").out == "u1/k is active, due next at 2035-01-01 09:00:00 UTC\n"
    assert here("pause", "u1", "k", "--json").json["state"] == "paused"
    assert here("resume", "u1", "k", "--json").json["state"] == "active"
    assert deeds(url)[1:3] == [("grace", "paused", "u1", "k", "on holiday"), ("ada", "resumed", "u1", "k", None)]


def test_a_command_refused_because_nothing_would_fire_names_its_own_remedy(here: Here, file_url: str) -> None:
    past = "at(2001-01-01T00:00:00)"
    never = "would never fire: its only instant, 2001-01-01T00:00:00Z, has passed or lies before its start"
    assert here("add", "u1", "k", past).err.endswith(f"tickler: u1/k {never}; to store it anyway, add it with --paused\n")

    assert here("add", "u1", "it's", past, "--paused").code == 0
    done = here("resume", "u1", "it's")
    remedy = "give it another time with `tickler update u1 'it'\"'\"'s' --when …`, then resume it"
    assert (done.code, done.err) == (1, f"tickler: u1/it's {never}; {remedy}\n")
    assert here("update", "u1", "it's", "--when", NEW_YEAR).code == 0
    assert here("resume", "u1", "it's").code == 0

    done = here("update", "u1", "it's", "--when", past)
    remedy = "to change it anyway, pause it first with `tickler pause u1 'it'\"'\"'s'`"
    assert (done.code, done.err) == (1, f"tickler: u1/it's {never}; {remedy}\n")
    assert here("pause", "u1", "it's").code == 0
    assert here("update", "u1", "it's", "--when", past).code == 0


def test_a_schedule_fires_when_it_is_triggered(here: Here, url: str) -> None:
    here("add", "u1", "k", NEW_YEAR, "--handler", "h")
    fire = here("trigger", "u1", "k", "--json").json
    assert fire["id"] in here("fires").out
    assert here("trigger", "u1", "k").out.startswith("u1/k queued for delivery as fire_")
    assert deeds(url)[1] == ("ada", "triggered", "u1", "k", fire["id"])


def test_something_is_sent_once(here: Here, url: str) -> None:
    command = ("send", "u1", "welcome", "--target", "https://example.org/hook", "--payload", '{"n": 1}')
    sent = here(*command, "--at", "2035-01-01T09:00:00", "--tz", "Europe/Paris", "--json").json
    assert (sent["nominal_at"], sent["is_new"]) == (2_051_251_200_000, True)
    again = here(*command, "--at", "2035-01-01T08:00:00Z")
    assert again.out == f"u1/welcome was sent before; nothing was sent: {sent['fire_id']}, 2035-01-01 08:00:00 UTC\n"
    other = here(*command)
    assert (other.code, "u1/welcome was sent with other content" in other.err) == (1, True)
    schedule = stored(url, key="welcome")
    assert (schedule.target, schedule.payload) == (HttpTarget("https://example.org/hook"), {"n": 1})
    assert deeds(url) == [("ada", "sent", "u1", "welcome", sent["fire_id"])]
    assert here("send", "u1", "other", "--handler", "h", "--policy", '{"attempts": 1}').code == 0
    assert stored(url, key="other").policy == Policy(attempts=1)
    assert here("send", "u1", "none").code == 2


def test_what_has_no_target_cannot_be_triggered(here: Here, file_url: str) -> None:
    here("add", "u1", "k", NEW_YEAR)
    done = here("trigger", "u1", "k")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("tickler: target: u1/k has no target")


def test_in_a_script_a_schedule_is_deleted_without_a_question(here: Here, url: str) -> None:
    here("add", "u1", "k", NEW_YEAR)
    here("add", "u1", "l", NEW_YEAR)
    assert here("delete", "u1", "k").out == "u1/k deleted\n"
    assert here("delete", "u1", "l", "--yes", "--json").json == {"owner": "u1", "key": "l", "deleted": True}
    assert here("list", "--json").json["items"] == []
    assert deeds(url)[-1] == ("ada", "deleted", "u1", "l", None)


@pytest.mark.parametrize("command", ["show", "pause", "resume", "trigger", "delete", "why"])
def test_what_is_not_there_has_an_exit_code_of_its_own(here: Here, file_url: str, command: str) -> None:
    here("add", "u1", "k", NEW_YEAR)
    done = here(command, "u1 x", "nothing")
    assert (done.code, done.out) == (3, "")
    assert done.err == "tickler: no schedule u1 x/nothing: see `tickler list --owner 'u1 x'`\n"


def test_nobody_says_who_it_was(here: Here, file_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("USER")
    here("add", "u1", "k", NEW_YEAR)
    assert deeds(file_url)[0][0] == "command line"


def test_looking_makes_no_store_of_one_that_was_mistyped(here: Here, file_url: str) -> None:
    for command in (["list"], ["show", "u1", "k"], ["fires"], ["export"], ["token", "list"], ["pause", "u1", "k"]):
        done = here(*command)
        assert (done.code, done.out) == (1, "")
        assert "has no Tickler tables: run `tickler migrate --store" in done.err
        assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", [["list"], ["fires"], ["add", "u1", "k", "@daily"], ["import", "-"], ["token", "list"]])
def test_without_a_store_it_says_how_to_name_one(here: Here, command: list[str]) -> None:
    done = here(*command)
    assert (done.code, done.out) == (2, "")
    assert "--store" in done.err


def test_the_shown_times_follow_the_zone_through_a_change(here: Here, file_url: str) -> None:
    done = here("add", "u1", "k", "0 12 * * *", "--tz", "Europe/Berlin", "--starts-at", "2035-03-24T00:00:00")
    assert [line.split()[3] for line in done.lines[-5:]] == ["+01:00", "+02:00", "+02:00", "+02:00", "+02:00"]


def test_a_target_that_would_be_refused_is_warned_of_and_put_all_the_same(
    here: Here, file_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TICKLER_ALLOW_NETWORKS", raising=False)
    add = ("add", "u1", "hook", "@hourly", "--target", "http://127.0.0.1:8000/hook", "--replace")
    done = here(*add)
    assert (done.code, done.lines[0]) == (0, "u1/hook")
    assert "warning: a worker with the settings of this process would not deliver it: " in done.err
    assert "set TICKLER_ALLOW_NETWORKS=127.0.0.0/8 where the worker runs" in done.err
    (warning,) = here(*add, "--json").json["warnings"]
    assert f"warning: {warning}" in done.err
    monkeypatch.setenv("TICKLER_ALLOW_NETWORKS", "127.0.0.0/8")
    assert here(*add).err == ""
    assert "warnings" not in here(*add, "--json").json
