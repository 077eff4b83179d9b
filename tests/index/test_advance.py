"""The pure advance: due rows in, what to do with each of them out."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tickler.index import advance as module
from tickler.index.advance import DueRow, RowProblem, advance, lacking_zones, reads
from tickler.model.index_row import IndexRow
from tickler.when import At, Cron, Every, Weekly, When, read_when

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z, a Wednesday
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
SOAK = os.environ.get("TICKLER_SOAK") == "1"

examples = settings(max_examples=3_000 if SOAK else 150, derandomize=not SOAK, deadline=None, database=None)

HOURLY = Cron("0 * * * *")
DAILY = Cron("0 9 * * *", tz="Asia/Tokyo")
ONCE = At(datetime.fromtimestamp(NOW_MS / 1000, UTC))

TEXTS_THAT_DO_NOT_READ = [
    "",
    "   ",
    "never",
    "61 * * * *",
    "* * * * * * * *",
    "0 0 30 2 *",
    "@sometimes",
    "@every",
    "@every 0s",
    "@every 1h from soon",
    "@every " + "9" * 5_000 + "s",
    "at()",
    "at(tomorrow)",
    "at(0001-01-01T00:00:00+05:00)",
    "at(9999-12-31T23:59:59-05:00)",
    "rate(0 minutes)",
    "rate(" + "9" * 400 + " weeks)",
    "rate(" + "9" * 5_000 + " weeks)",
    "weekly(someday 09:00)",
    "weekly(tue)",
    "cron(cron(0 * * * *))",
    "phase(moon)",
    "\x00",
    "\ud800",
    "٣ * * * *",
    "x" * 100_000,
]
ZONES_THAT_ARE_NONE = ["", "Mars/Olympus_Mons", "../../etc/passwd", "/etc/localtime", "localtime", "Europe", "a\x00b", "\ud800"]


def row(
    key: str = "k",
    when: When = HOURLY,
    next_fire_at: int = NOW_MS,
    *,
    ends_at: int | None = None,
    offset_ms: int = 0,
    managed: bool | int = False,
) -> DueRow:
    return DueRow(f"place of {key}", "u1", key, str(when), when.tz, next_fire_at, ends_at, offset_ms, managed)  # type: ignore[arg-type]  # SQLite has numbers


def bad_row(key: str, when_text: str, tz: str = "UTC") -> DueRow:
    return DueRow(f"place of {key}", "u1", key, when_text, tz, NOW_MS, None, 0, False)


def test_nothing_due_is_nothing_to_do() -> None:
    result = advance([], NOW_MS)
    assert (result.claimed, result.moved, result.moved_to, result.finished, result.problems) == ([], [], [], [], [])


def test_rows_are_claimed_as_they_were_and_in_the_order_they_came() -> None:
    rows = [
        row("b", HOURLY, NOW_MS - 5, ends_at=NOW_MS + DAY_MS, offset_ms=7),
        row("c", ONCE, NOW_MS - 9, managed=1),
        row("a", DAILY, NOW_MS),
    ]
    result = advance(rows, NOW_MS)
    assert result.claimed == [
        IndexRow("u1", "b", HOURLY, NOW_MS - 5, NOW_MS + DAY_MS, 7),
        IndexRow("u1", "c", ONCE, NOW_MS - 9, managed=True),
        IndexRow("u1", "a", DAILY, NOW_MS),
    ]
    assert result.claimed[1].managed is True, "a store may keep it as a number"
    assert result.moved == ["place of b", "place of a"]
    assert result.finished == [rows[1]]


@pytest.mark.parametrize(
    ("due", "moved_to"),
    [
        (row(), NOW_MS + HOUR_MS),
        (row(next_fire_at=NOW_MS - 400 * DAY_MS), NOW_MS + HOUR_MS),
        (row(when=DAILY), NOW_MS + 12 * HOUR_MS),
        (row(when=Every(minutes=7, start=NOW_MS - MINUTE_MS)), NOW_MS + 6 * MINUTE_MS),
        (row(when=Every(minutes=7, start=NOW_MS)), NOW_MS + 7 * MINUTE_MS),
        (row(when=Weekly({"wed": "12:00"})), NOW_MS + 7 * DAY_MS),
        (row(ends_at=NOW_MS + HOUR_MS), NOW_MS + HOUR_MS),
        # An offset: the instant at now itself, and those less than the offset ago, are still ahead.
        (row(next_fire_at=NOW_MS - HOUR_MS + 20, offset_ms=20), NOW_MS + 20),
        (row(next_fire_at=NOW_MS, offset_ms=HOUR_MS - 1), NOW_MS + HOUR_MS - 1),
        (row(next_fire_at=NOW_MS - DAY_MS + 20, offset_ms=20), NOW_MS + 20),
        (row(next_fire_at=NOW_MS - HOUR_MS + 20, offset_ms=20, ends_at=NOW_MS), NOW_MS + 20),
    ],
)
def test_a_row_moves_to_its_first_instant_after_now(due: DueRow, moved_to: int) -> None:
    result = advance([due], NOW_MS)
    assert (result.moved, result.moved_to) == ([due.handle], [moved_to])
    assert result.finished == []


@pytest.mark.parametrize(
    "due",
    [
        row(when=ONCE),
        row(when=ONCE, next_fire_at=NOW_MS + 0),
        row(when=At("2011-12-30T10:00:00", tz="Pacific/Apia")),
        row(when=Weekly({})),
        row(ends_at=NOW_MS + HOUR_MS - 1),
        row(ends_at=NOW_MS),
        row(ends_at=NOW_MS - DAY_MS),
        row(next_fire_at=NOW_MS - HOUR_MS + 20, offset_ms=20, ends_at=NOW_MS - 1),
        row(when=ONCE, next_fire_at=NOW_MS - 1, offset_ms=0, managed=True),
    ],
)
def test_a_row_with_no_instant_left_is_claimed_and_finished(due: DueRow) -> None:
    result = advance([due], NOW_MS)
    assert [claimed.key for claimed in result.claimed] == ["k"]
    assert result.finished == [due]
    assert (result.moved, result.moved_to) == ([], [])


def test_a_one_shot_with_an_offset_is_finished_only_when_its_moved_instant_is_claimed() -> None:
    moved = row(when=ONCE, next_fire_at=NOW_MS + 500, offset_ms=500)
    assert advance([moved], NOW_MS + 500).finished == [moved]


@pytest.mark.parametrize("text", TEXTS_THAT_DO_NOT_READ, ids=lambda text: repr(text[:40]))
def test_a_row_that_does_not_read_is_a_problem_with_a_reason_and_blocks_nothing(text: str) -> None:
    bad = bad_row("bad", text)
    result = advance([row("a"), bad, row("b")], NOW_MS)
    assert [claimed.key for claimed in result.claimed] == ["a", "b"]
    (problem,) = result.problems
    assert problem.row == bad
    assert problem.reason
    assert problem.lacking_zone is None
    assert not reads(text, "UTC")


@pytest.mark.parametrize("zone", ZONES_THAT_ARE_NONE, ids=lambda zone: repr(zone[:40]))
def test_a_zone_that_this_machine_lacks_is_named(zone: str) -> None:
    bad = bad_row("bad", "0 9 * * *", zone)
    result = advance([bad, row("good")], NOW_MS)
    assert [claimed.key for claimed in result.claimed] == ["good"]
    assert [(problem.row, problem.lacking_zone) for problem in result.problems] == [(bad, zone)]
    assert lacking_zones(result.problems) == {zone}
    assert not reads("0 9 * * *", zone)


def test_a_zone_with_an_endless_name_is_a_problem_with_a_short_reason() -> None:
    result = advance([bad_row("bad", "0 9 * * *", "x" * 100_000), row("good")], NOW_MS)
    assert [claimed.key for claimed in result.claimed] == ["good"]
    assert [len(problem.reason) < 1_000 for problem in result.problems] == [True]


def test_every_bad_row_is_a_problem_of_its_own() -> None:
    rows = [bad_row("a", "never"), bad_row("b", "never"), bad_row("c", "0 9 * * *", "Mars/Olympus_Mons")]
    result = advance(rows, NOW_MS)
    assert [problem.row for problem in result.problems] == rows
    assert lacking_zones(result.problems) == {"Mars/Olympus_Mons"}
    assert lacking_zones([RowProblem(rows[0], "x", None)]) == set()


@pytest.mark.parametrize("when", [HOURLY, DAILY, ONCE, Weekly({}), Every(minutes=5, start=NOW_MS)], ids=str)
def test_what_a_when_writes_reads(when: When) -> None:
    assert reads(str(when), when.tz)


def test_each_expression_and_zone_is_read_and_computed_once_however_many_rows_share_it() -> None:
    whens = [Cron("0 9 * * *", tz=zone) for zone in ("Asia/Tokyo", "Europe/Paris")] + [Cron("30 9 * * *", tz="Asia/Tokyo")]
    rows = [row(f"k{n}", whens[n % 3], NOW_MS - n, ends_at=NOW_MS + n * HOUR_MS) for n in range(300)]
    bad = [bad_row(f"bad{n}", "never") for n in range(50)]
    with (
        patch.object(module, "read_when", wraps=read_when) as read,
        patch.object(Cron, "next_after", autospec=True, side_effect=Cron.next_after) as computed,
    ):
        result = advance([*rows, *bad], NOW_MS)
    assert sorted(call.args for call in read.call_args_list) == sorted([*((str(w), w.tz) for w in whens), ("never", "UTC")])
    assert computed.call_count == 3
    assert len(result.claimed) == 300
    assert len(result.problems) == 50
    assert result.finished
    assert result.moved


def test_rows_may_come_from_an_iterator() -> None:
    assert advance(iter([row("a"), row("b")]), NOW_MS).moved == ["place of a", "place of b"]


zones = st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"])
whens: st.SearchStrategy[When] = st.one_of(
    st.builds(Cron, st.sampled_from(["0 9 * * tue", "*/5 * * * *", "30 2 * * *", "0 0 29 2 *", "15 1,2,3 * * *"]), tz=zones),
    st.builds(Weekly, st.just({"sun": ["01:30", "02:30", "03:30"], "wed": "12:00"}), tz=zones),
    st.builds(Every, seconds=st.integers(1, 10**6), start=st.none() | st.integers(NOW_MS - DAY_MS, NOW_MS + DAY_MS)),
    st.builds(At, st.datetimes(datetime(2029, 1, 1), datetime(2032, 1, 1)), tz=zones),
)
nows = st.integers(NOW_MS - 3 * 365 * DAY_MS, NOW_MS + 3 * 365 * DAY_MS)


@st.composite
def due_rows(draw: st.DrawFn) -> tuple[list[DueRow], int]:
    """Rows as schedules write them, and a now at which they are due."""
    now_ms = draw(nows)
    rows = []
    for number in range(draw(st.integers(1, 6))):
        when = draw(whens)
        shortest_ms = when.shortest_interval_ms() or DAY_MS
        offset_ms = draw(st.sampled_from([0, 0, 1, shortest_ms - 1, shortest_ms // 2]))
        nominal_at = when.last_before(now_ms - offset_ms - draw(st.sampled_from([0, 0, 90 * DAY_MS])))
        if nominal_at is not None:
            ends_at = draw(st.none() | st.integers(nominal_at, now_ms + DAY_MS))
            rows.append(row(f"k{number}", when, nominal_at + offset_ms, ends_at=ends_at, offset_ms=offset_ms))
    return rows, now_ms


@examples
@given(due_rows())
def test_every_row_moves_to_the_first_of_its_instants_after_now_or_has_none_left(due: tuple[list[DueRow], int]) -> None:
    rows, now_ms = due
    result = advance(rows, now_ms)
    assert result.problems == []
    assert [(claimed.key, claimed.next_fire_at) for claimed in result.claimed] == [(row.key, row.next_fire_at) for row in rows]
    moved_to = dict(zip(result.moved, result.moved_to, strict=True))
    assert len(moved_to) + len(result.finished) == len(rows)
    for row in rows:
        when = read_when(row.when_text, row.tz)
        if row in result.finished:
            assert row.handle not in moved_to
            following = when.next_after(now_ms - row.offset_ms)
            assert following is None or (row.ends_at is not None and following > row.ends_at)
            continue
        nominal_at = moved_to[row.handle] - row.offset_ms
        assert moved_to[row.handle] > now_ms
        assert nominal_at > row.next_fire_at - row.offset_ms
        assert when.last_before(nominal_at) == nominal_at, "it is an instant of the schedule's"
        earlier = when.last_before(nominal_at - 1)
        assert earlier is None or earlier + row.offset_ms <= now_ms, "and none lies between"
        assert row.ends_at is None or nominal_at <= row.ends_at


@examples
@given(due_rows())
def test_a_second_claim_at_the_same_now_finds_nothing_due(due: tuple[list[DueRow], int]) -> None:
    rows, now_ms = due
    assert all(next_fire_at > now_ms for next_fire_at in advance(rows, now_ms).moved_to)


@examples
@given(st.text(max_size=40), st.sampled_from(["UTC", "Europe/Paris"]) | st.text(max_size=20))
def test_no_text_at_all_makes_the_advance_fail(text: str, tz: str) -> None:
    result = advance([bad_row("any", text, tz), row("good")], NOW_MS)
    assert result.claimed[-1].key == "good"
    assert len(result.claimed) + len(result.problems) == 2


@examples
@given(
    st.sampled_from(["at({})", "rate({})", "weekly({})", "cron({})", "@every {}", "{}", "@every 1h from {}"]),
    st.text("0123456789 :-+TZ.,*/#LWmontuehrsday()", max_size=40),
)
@example("@every 1h from {}", "9999-12-31T23:59:59.999999Z")
@example("at({})", "9999-12-31T23:59:59.999999Z")
@example("@every 1h from {}", "0001-01-01T00:00:00+23:59")
def test_no_text_that_looks_like_an_expression_makes_it_fail_either(form: str, body: str) -> None:
    result = advance([bad_row("any", form.format(body)), row("good")], NOW_MS)
    assert result.claimed[-1].key == "good"
