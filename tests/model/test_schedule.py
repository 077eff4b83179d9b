"""A schedule as a value: what people may write, what is kept, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from tickler.errors import InvalidInput, InvalidSchedule, InvalidWhen, UnknownTimezone
from tickler.model.policy import DEFAULT_POLICY, Policy
from tickler.model.schedule import MAX_NAME_BYTES, Id, Schedule, StoredSchedule
from tickler.model.target import HttpTarget, PythonTarget, Target
from tickler.when import At, Cron, Every, Unreadable, Weekly, When

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
NOW = datetime(2030, 11, 20, 12, tzinfo=UTC)
HOURLY = Cron("0 * * * *")
PARIS = Cron("0 9 * * tue", tz="Europe/Paris")
ONCE = At("2031-03-15T00:00:00", tz="America/Chicago")


def schedule(**fields: object) -> Schedule:
    given: dict[str, object] = {"owner": "u1", "key": "digest", "when": HOURLY, **fields}
    return Schedule(**given)  # type: ignore[arg-type]  # any field of a schedule, right or wrong


def stored(**fields: object) -> StoredSchedule:
    known = {"version": 3, "created_at": NOW_MS, "updated_at": NOW_MS + 1, "state": "active", "next_fire_at": NOW_MS + 2}
    given: dict[str, object] = {"owner": "u1", "key": "digest", "when": HOURLY, **known, **fields}
    return StoredSchedule(**given)  # type: ignore[arg-type]  # any field of a stored schedule


# When.


@pytest.mark.parametrize(
    ("fields", "when"),
    [
        ({"when": PARIS}, PARIS),
        ({"when": PARIS, "tz": "Europe/Paris"}, PARIS),
        ({"when": "0 9 * * tue", "tz": "Europe/Paris"}, PARIS),
        ({"when": "  cron(0 9 * * TUE) ", "tz": "Europe/Paris"}, PARIS),
        ({"when": "0 * * * *"}, HOURLY),
        ({"when": "0 * * * *", "tz": None}, HOURLY),
        ({"when": "@hourly", "tz": "UTC"}, HOURLY),
        ({"when": "at(2031-03-15T00:00:00)", "tz": "America/Chicago"}, ONCE),
        ({"when": "weekly(tue 09:00)", "tz": "Asia/Tokyo"}, Weekly({"tue": "09:00"}, tz="Asia/Tokyo")),
        ({"when": "rate(5 minutes)"}, Every(minutes=5)),
        ({"when": "@every 1h30m"}, Every(hours=1.5)),
        ({"when": Every(minutes=5, start=NOW_MS)}, Every(minutes=5, start=NOW_MS)),
        ({"when": Unreadable("never", "Mars/Olympus_Mons", "no such zone")}, Unreadable("never", "Mars/Olympus_Mons", "")),
    ],
    ids=lambda value: str(value)[:50],
)
def test_when_is_a_value_or_text_with_its_zone(fields: dict[str, object], when: When) -> None:
    declared = schedule(**fields)
    assert declared.when == when
    assert declared.tz == when.tz == declared.when.tz


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"when": PARIS, "tz": "UTC"}, InvalidSchedule, "^tz: 'UTC' differs from the zone of .*leave tz out"),
        ({"when": HOURLY, "tz": "Europe/Paris"}, InvalidSchedule, "^tz: 'Europe/Paris' differs"),
        ({"when": HOURLY, "tz": ""}, InvalidSchedule, "^tz: "),
        ({"when": Every(minutes=5), "tz": "Europe/Paris"}, InvalidSchedule, "^tz: "),
        ({"when": HOURLY, "tz": 5}, InvalidSchedule, "^tz: "),
        ({"when": "0 * * * *", "tz": 5}, InvalidSchedule, "^tz: is a int"),
        ({"when": "0 * * * *", "tz": ["UTC"]}, InvalidSchedule, "^tz: is a list"),
        ({"when": "0 * * * *", "tz": UTC}, InvalidSchedule, "^tz: is a timezone"),
        ({"when": "0 * * * *", "tz": ""}, InvalidInput, "^unknown time zone ''"),
        ({"when": "0 * * * *", "tz": "Europe/Pariss"}, UnknownTimezone, "did you mean 'Europe/Paris'"),
        ({"when": "61 * * * *"}, InvalidWhen, "minute"),
        ({"when": ""}, InvalidWhen, "five fields"),
        ({"when": "at(2031-03-15T00:00:00Z)", "tz": "Europe/Paris"}, InvalidWhen, "the offset conflicts with tz='Europe/Paris'"),
        ({"when": None}, InvalidSchedule, "^when: is a NoneType"),
        ({"when": 300}, InvalidSchedule, "^when: is a int"),
        ({"when": timedelta(minutes=5)}, InvalidSchedule, "^when: is a timedelta"),
        ({"when": NOW}, InvalidSchedule, "^when: is a datetime"),
        ({"when": {"weekly": {"tue": "09:00"}}}, InvalidSchedule, "^when: is a dict"),
        ({"when": Cron}, InvalidSchedule, "^when: is a "),
        ({"when": b"0 * * * *"}, InvalidSchedule, "^when: is a bytes"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_when_or_zone_that_does_not_fit_is_refused_with_a_reason(
    fields: dict[str, object], error: type[InvalidInput], said: str
) -> None:
    with pytest.raises(error, match=said):
        schedule(**fields)


@pytest.mark.parametrize("missing", ["owner", "key", "when"])
def test_owner_key_and_when_are_needed(missing: str) -> None:
    given = {"owner": "u1", "key": "digest", "when": HOURLY}
    del given[missing]
    with pytest.raises(TypeError, match=missing):
        Schedule(**given)  # type: ignore[arg-type]  # one is missing


def test_a_field_nobody_reads_is_refused() -> None:
    with pytest.raises(TypeError, match="timezone"):
        schedule(timezone="Europe/Paris")


# Names.


@pytest.mark.parametrize("field", ["owner", "key"])
@pytest.mark.parametrize(
    "name",
    [
        "a",
        "user-1",
        "a b",
        " ",
        "a/b",
        "../..",
        "%2F",
        "'; DROP TABLE tickler_index; --",
        "ä",
        "日本",
        "🐌",
        "👩‍👩‍👧",  # with the joiners that make it one
        "e\u0301",
        "a\u00a0b",
        "\u202eb",
        "x" * MAX_NAME_BYTES,
        "ä" * (MAX_NAME_BYTES // 2),
        "🐌" * (MAX_NAME_BYTES // 4),
    ],
    ids=lambda name: repr(name[:30]),
)
def test_a_name_is_printable_text_kept_as_it_is(field: str, name: str) -> None:
    assert getattr(schedule(**{field: name}), field) == name


@pytest.mark.parametrize("field", ["owner", "key"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is empty"),
        ("x" * (MAX_NAME_BYTES + 1), "has 513 bytes, more than 512: shorten it"),
        ("ä" * (MAX_NAME_BYTES // 2) + "x", "has 513 bytes"),
        ("🐌" * (MAX_NAME_BYTES // 4) + "🐌", "has 516 bytes"),
        *((f"a{chr(code)}b", "control characters") for code in (*range(32), *range(127, 160))),
        ("\ud800", "contains an unpaired surrogate"),
        ("a\udc00b", "contains an unpaired surrogate"),
        (None, "is a NoneType"),
        (5, "is a int"),
        (True, "is a bool"),
        (b"u1", "is a bytes"),
        (["u1"], "is a list"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_name_that_is_none_is_refused_and_the_field_named(field: str, name: object, said: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"^{field}: .*{said}") as refused:
        schedule(**{field: name})
    assert refused.value.field == field


def test_an_id_is_owner_and_key_and_shown_as_both() -> None:
    declared = schedule(owner="u1", key="a/b")
    assert declared.id == Id("u1", "a/b") == ("u1", "a/b")
    assert isinstance(declared.id, Id)
    assert str(declared.id) == "u1/a/b"
    assert (declared.id.owner, declared.id.key) == ("u1", "a/b")


# Target, payload, policy, flags.


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (None, None),
        ("https://example.org/", HttpTarget("https://example.org/")),
        (HttpTarget("https://example.org/"), HttpTarget("https://example.org/")),
        (PythonTarget("digest"), PythonTarget("digest")),
        ({"type": "http", "url": "https://example.org/"}, HttpTarget("https://example.org/")),
        (MappingProxyType({"type": "python", "handler": "digest"}), PythonTarget("digest")),
    ],
    ids=str,
)
def test_a_target_is_a_value_a_url_an_object_or_left_out(given: object, target: Target | None) -> None:
    assert schedule(target=given).target == target


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target", 5),
        ("target", "digest"),
        ("target", {"type": "ftp"}),
        ("policy", None),
        ("policy", {"missed": "skip"}),
        ("policy", Policy),
        ("enabled", None),
        ("enabled", 1),
        ("enabled", "false"),
        ("delete_after", 0),
        ("delete_after", "true"),
    ],
    ids=str,
)
def test_a_field_of_the_wrong_kind_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidSchedule, match=rf"^{field}(\.url)?: "):
        schedule(**{field: value})


def test_what_is_left_out_has_its_default() -> None:
    declared = schedule()
    assert (declared.target, declared.payload, declared.starts_at, declared.ends_at) == (None, None, None, None)
    assert declared.policy is DEFAULT_POLICY
    assert declared.enabled is True


@pytest.mark.parametrize(
    ("fields", "goes"),
    [
        ({"when": ONCE}, True),
        ({"when": "at(2031-03-15T00:00:00Z)"}, True),
        ({"when": ONCE, "delete_after": None}, True),
        ({"when": ONCE, "delete_after": False}, False),
        ({"when": HOURLY}, False),
        ({"when": HOURLY, "delete_after": True}, True),
        ({"when": Every(minutes=5)}, False),
        ({"when": Weekly({"tue": "09:00"})}, False),
        ({"when": HOURLY, "ends_at": NOW_MS}, False),
    ],
    ids=str,
)
def test_only_one_shots_go_when_they_are_done_unless_it_is_said(fields: dict[str, object], goes: bool) -> None:
    assert schedule(**fields).delete_after is goes


# Bounds.


@pytest.mark.parametrize("field", ["starts_at", "ends_at"])
@pytest.mark.parametrize(
    ("bound", "ms"),
    [
        (None, None),
        (NOW_MS, NOW_MS),
        (NOW, NOW_MS),
        (NOW.replace(microsecond=1_000), NOW_MS + 1),
        (NOW.astimezone(timezone(timedelta(hours=-7))), NOW_MS),
    ],
    ids=str,
)
def test_a_bound_is_milliseconds_or_an_aware_datetime(field: str, bound: object, ms: int | None) -> None:
    assert getattr(schedule(**{field: bound}), field) == ms


@pytest.mark.parametrize("field", ["starts_at", "ends_at"])
@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (NOW_MS // 1000, "looks like seconds"),
        (NOW_MS * 1000, "micro- or nanoseconds"),
        (0, "a missing value"),
        (-1, "a missing value"),
        (True, "is a bool"),
        (float(NOW_MS), "is a float"),
        ("2030-11-20T12:00:00Z", "is a str"),
        (NOW.replace(tzinfo=None), "naive datetime"),
        (date(2030, 11, 20), "is a date"),
    ],
    ids=str,
)
def test_a_bound_that_is_no_instant_is_refused_by_name(field: str, bound: object, said: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"^{field}: .*{said}") as refused:
        schedule(**{field: bound})
    assert refused.value.field == field
    assert str(refused.value).count(field) == 1


def test_bounds_are_in_order_and_may_be_one_instant() -> None:
    assert schedule(starts_at=NOW_MS, ends_at=NOW).ends_at == NOW_MS
    with pytest.raises(InvalidSchedule, match=r"^ends_at: is before starts_at"):
        schedule(starts_at=NOW_MS, ends_at=NOW_MS - 1)


# Spread.


@pytest.mark.parametrize(
    ("when", "shortest_s"),
    [
        (HOURLY, 3600),
        (Cron("*/5 * * * *"), 300),
        (Cron("0 9,17 * * *"), 8 * 3600),
        (Cron("30 0 9 * * tue", tz="Europe/Paris"), 86_400),
        (Weekly({"mon": "09:00", "tue": "09:30"}), 24.5 * 3600),
        (Weekly({"mon": ["00:00", "12:00"], "sun": "23:59"}), 60),
        (Every(minutes=5), 300),
        (Every(seconds=1.5, start=NOW_MS), 1.5),
    ],
    ids=str,
)
def test_spread_is_shorter_than_the_shortest_interval(when: When, shortest_s: float) -> None:
    a_little_less = timedelta(seconds=shortest_s) - timedelta(microseconds=1)
    assert schedule(when=when, policy=Policy(spread=a_little_less)).policy.spread == a_little_less
    with pytest.raises(InvalidSchedule, match=rf"^policy\.spread: must be shorter than {shortest_s:g} s") as refused:
        schedule(when=when, policy=Policy(spread=shortest_s))
    assert refused.value.field == "policy.spread"


@pytest.mark.parametrize("when", [ONCE, Weekly({"mon": None})], ids=str)
def test_what_happens_once_or_never_may_be_spread_over_any_time(when: When) -> None:
    declared = schedule(when=when, policy=Policy(spread=timedelta(days=366)))
    assert 0 <= declared.offset_ms() < 366 * 86_400_000


def test_without_a_spread_nothing_is_moved() -> None:
    assert schedule().offset_ms() == 0
    assert schedule(policy=Policy(spread=timedelta(microseconds=1))).offset_ms() == 0


def test_an_offset_is_the_same_for_the_whole_life_of_a_schedule() -> None:
    """It is stored in rows: another hash in another version would move every fire."""
    spread = Policy(spread=3599)
    assert schedule(policy=spread).offset_ms() == 3_344_262
    assert schedule(owner="日本", key="a/b 🐌", policy=spread).offset_ms() == 2_435_550
    others = schedule(when=Cron("30 9 * * *", tz="Asia/Tokyo"), payload=1, starts_at=NOW, enabled=False, policy=spread)
    assert others.offset_ms() == schedule(policy=spread).offset_ms()


def test_an_offset_depends_on_where_the_owner_ends_and_the_key_begins() -> None:
    spread = Policy(spread=3599)
    splits = [("abc"[:n], "abc"[n:]) for n in (1, 2)]
    assert len({schedule(owner=owner, key=key, policy=spread).offset_ms() for owner, key in splits}) == 2


@pytest.mark.parametrize("spread_ms", [2_000, 60_000, 3_599_999])
def test_offsets_are_uniform_over_the_spread(spread_ms: int) -> None:
    buckets, number = 20, 4_000
    spread = Policy(spread=timedelta(milliseconds=spread_ms))
    offsets = [schedule(owner=f"u{n % 50}", key=f"k{n}", policy=spread).offset_ms() for n in range(number)]
    assert min(offsets) >= 0
    assert max(offsets) < spread_ms
    counts = Counter(offset * buckets // spread_ms for offset in offsets)
    expected = number / buckets
    chi_square = sum((counts[bucket] - expected) ** 2 / expected for bucket in range(buckets))
    assert chi_square < 50, "19 degrees of freedom: a fair hash exceeds 50 once in ten thousand"


# A value: immutable, comparable, replaceable.


@pytest.mark.parametrize("value", [schedule(), stored()], ids=lambda value: type(value).__name__)
def test_nothing_of_a_schedule_can_be_set(value: Schedule) -> None:
    for name in value.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(value, name, getattr(value, name))
        with pytest.raises((AttributeError, TypeError)):
            delattr(value, name)


def test_schedules_are_equal_when_everything_declared_is() -> None:
    assert schedule(when="@daily", tz="UTC") == schedule(when=Cron("0  0 * * *"))
    assert schedule(target="https://example.org/") == schedule(target=HttpTarget("https://example.org/"))
    assert schedule(starts_at=NOW) == schedule(starts_at=NOW_MS)
    assert schedule(policy=Policy(spread=60)) == schedule(policy=Policy(spread=timedelta(minutes=1)))
    different: list[dict[str, object]] = [
        {"owner": "u2"},
        {"key": "other"},
        {"when": Cron("0 * * * *", tz="Asia/Tokyo")},
        {"when": "1 * * * *"},
        {"target": "https://example.org/"},
        {"payload": {"a": 1}},
        {"policy": Policy(missed="skip")},
        {"starts_at": NOW},
        {"ends_at": NOW},
        {"delete_after": True},
        {"enabled": False},
    ]
    for fields in different:
        assert schedule(**fields) != schedule(), fields


def test_replacing_a_field_keeps_the_others_and_checks_all() -> None:
    declared = schedule(when=PARIS, payload={"a": 1}, ends_at=NOW, policy=Policy(spread=60))
    assert replace(declared, payload=2) == schedule(when=PARIS, payload=2, ends_at=NOW, policy=Policy(spread=60))
    assert replace(declared, starts_at=NOW).starts_at == NOW_MS
    assert replace(declared, target="https://example.org/").target == HttpTarget("https://example.org/")
    wrong: list[dict[str, object]] = [
        {"owner": ""},
        {"ends_at": NOW_MS // 1000},
        {"starts_at": NOW_MS + 1},
        {"policy": Policy(spread=90_000)},
        {"enabled": None},
    ]
    for fields in wrong:
        with pytest.raises(InvalidSchedule):
            replace(declared, **fields)


def test_replacing_when_keeps_the_zone_or_takes_the_new_one_with_it() -> None:
    declared = schedule(when=PARIS)
    assert replace(declared, when="0 10 * * tue").when == Cron("0 10 * * tue", tz="Europe/Paris")
    tokyo = Cron("0 9 * * tue", tz="Asia/Tokyo")
    assert replace(declared, when=tokyo, tz=tokyo.tz).when == tokyo
    with pytest.raises(InvalidSchedule, match=r"^tz: 'Europe/Paris' differs from the zone of .*Asia/Tokyo"):
        replace(declared, when=tokyo)
    with pytest.raises(InvalidSchedule, match=r"^tz: 'Asia/Tokyo' differs"):
        replace(declared, tz="Asia/Tokyo")


def test_what_is_declared_of_a_stored_schedule_is_a_plain_schedule() -> None:
    fields: dict[str, object] = {
        "when": ONCE,
        "target": PythonTarget("digest"),
        "payload": {"a": [1]},
        "policy": Policy(missed="all"),
        "starts_at": NOW,
        "ends_at": NOW_MS + 1,
        "delete_after": False,
        "enabled": False,
    }
    declared = stored(**fields).declared()
    assert type(declared) is Schedule
    assert declared == schedule(**fields)
    assert stored().declared() == schedule()


def test_what_is_declared_of_an_unreadable_schedule_can_be_shown() -> None:
    unreadable = Unreadable("never", "Mars/Olympus_Mons", "no such zone")
    declared = stored(when=unreadable, state="unreadable", next_fire_at=None, reason="no such zone").declared()
    assert declared.when == unreadable
    assert declared.tz == "Mars/Olympus_Mons"


def test_stored_schedules_differ_by_what_the_store_knows() -> None:
    assert stored() == stored()
    different: list[dict[str, object]] = [
        {"version": 4},
        {"created_at": NOW_MS + 1},
        {"updated_at": NOW_MS},
        {"state": "paused"},
        {"next_fire_at": None},
        {"reason": "x"},
    ]
    for fields in different:
        assert stored(**fields) != stored(), fields


TYPED = """
from datetime import datetime, timedelta, UTC
from tickler import At, Cron, HttpTarget, Policy, Schedule

now = datetime.now(UTC)
policy = Policy(spread=90, grace=timedelta(minutes=1), timeout=0.5, backoff=[5, timedelta(minutes=5)], missed="skip")
schedule = Schedule(owner="u1", key="digest", when="0 9 * * tue", tz="Europe/Paris", target="https://example.org/")
Schedule(owner="u1", key="digest", when=At(now), target=HttpTarget("https://example.org/"), payload={"a": [1]}, policy=policy)
Schedule(owner="u1", key="digest", when=Cron("@daily"), starts_at=now, ends_at=1_921_406_400_000, enabled=False)
Schedule(owner="u1", key="digest", when="@daily", tz=None, starts_at=None, delete_after=None)
zone: str = schedule.tz
starts_at: int | None = schedule.starts_at
deleted: bool = schedule.delete_after
spread: timedelta = policy.spread
Schedule(owner="u1", key="digest", when=300)  # wrong
Schedule(owner="u1", key="digest")  # wrong
Schedule(owner="u1", key="digest", when="@daily", retries=3)  # wrong
Schedule(owner="u1", key="digest", when="@daily", starts_at="2026-01-01T00:00:00Z")  # wrong
Schedule("u1", "digest", "@daily")  # wrong
Policy(missed="sometimes")  # wrong
Policy(spread="90s")  # wrong
schedule.owner = "u2"  # wrong
"""


def test_a_type_checker_takes_what_the_constructors_take_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text(TYPED, encoding="utf-8")
    environment = {**os.environ, "MYPYPATH": str(Path(__file__).parents[2] / "src")}
    arguments = ["--strict", "--cache-dir", str(tmp_path / "cache"), "--no-error-summary", "snippet.py"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    refused = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line}
    wrong = {number for number, line in enumerate(TYPED.splitlines(), 1) if line.endswith("# wrong")}
    assert refused == wrong, done.stdout + done.stderr
