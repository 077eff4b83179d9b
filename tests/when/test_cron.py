"""Cron expressions: what they mean, how they are spelled, and what is refused."""

from __future__ import annotations

import copy
from time import perf_counter

import pytest

from tickler.errors import InvalidWhen, UnknownTimezone
from tickler.when import Cron

from .instants import fires, ms


@pytest.mark.parametrize(
    ("expr", "expected"),  # from noon on Thursday, 15 January 2026
    [
        ("* * * * *", ["2026-01-15T12:01", "2026-01-15T12:02", "2026-01-15T12:03"]),
        ("0 9 * * tue,thu", ["2026-01-20T09:00", "2026-01-22T09:00", "2026-01-27T09:00"]),
        ("0 9 * * 1-5", ["2026-01-16T09:00", "2026-01-19T09:00", "2026-01-20T09:00"]),
        ("0 9-17/4 * * *", ["2026-01-15T13:00", "2026-01-15T17:00", "2026-01-16T09:00"]),
        ("20/25 12 * * *", ["2026-01-15T12:20", "2026-01-15T12:45", "2026-01-16T12:20"]),
        ("0 0 1 jan,jul *", ["2026-07-01T00:00", "2027-01-01T00:00", "2027-07-01T00:00"]),
        ("0 0 L * *", ["2026-01-31T00:00", "2026-02-28T00:00", "2026-03-31T00:00"]),
        ("0 0 LW * *", ["2026-01-30T00:00", "2026-02-27T00:00", "2026-03-31T00:00"]),
        ("0 0 * * fri#2", ["2026-02-13T00:00", "2026-03-13T00:00", "2026-04-10T00:00"]),
        ("0 0 * * 1#5", ["2026-03-30T00:00", "2026-06-29T00:00", "2026-08-31T00:00"]),
        ("0 0 * * 5L", ["2026-01-30T00:00", "2026-02-27T00:00", "2026-03-27T00:00"]),
        ("0 0 * 7 5L", ["2026-07-31T00:00", "2027-07-30T00:00", "2028-07-28T00:00"]),
        ("0 0 * * 0L", ["2026-01-25T00:00", "2026-02-22T00:00", "2026-03-29T00:00"]),
        ("0 0 * * 7L", ["2026-01-25T00:00", "2026-02-22T00:00", "2026-03-29T00:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]),
        ("0 0 29 2 */6", ["2032-02-29T00:00", "2048-02-29T00:00", "2060-02-29T00:00"]),
        ("0 0 13 * fri", ["2026-01-16T00:00", "2026-01-23T00:00", "2026-01-30T00:00"]),  # the 13th or a Friday
        ("0 0 1-7 * */7", ["2026-02-01T00:00", "2026-03-01T00:00", "2026-04-05T00:00"]),  # the first Sunday
        ("0 0 * * 0", ["2026-01-18T00:00", "2026-01-25T00:00", "2026-02-01T00:00"]),
        ("0 0 * * 7", ["2026-01-18T00:00", "2026-01-25T00:00", "2026-02-01T00:00"]),
        ("15,45 59 23 31 12 *", ["2026-12-31T23:59:15", "2026-12-31T23:59:45", "2027-12-31T23:59:15"]),
        ("0 0 31 2,4,6,8 *", ["2026-08-31T00:00", "2027-08-31T00:00", "2028-08-31T00:00"]),
    ],
)
def test_an_expression_names_these_instants(expr: str, expected: list[str]) -> None:
    when = Cron(expr)
    assert fires(when, "2026-01-15T12:00Z", 3) == [f"{moment}+00:00" for moment in expected]
    assert when.last_before(ms(f"{expected[1]}Z") - 1) == ms(f"{expected[0]}Z")


@pytest.mark.parametrize(
    ("expr", "plain"),
    [
        ("5-5/10 * * * *", "5 * * * *"),
        ("5-05/10 * * * *", "5 * * * *"),
        ("0 9-9/2 * * *", "0 9 * * *"),
        ("0 0 * * 0-0/1", "0 0 * * 0"),
        ("0 0 * * mon-1/2", "0 0 * * 1"),
        ("0 0 1 12-Dec/3,mar *", "0 0 1 3,12 *"),
    ],
)
def test_a_range_of_one_with_a_step_is_that_one(expr: str, plain: str) -> None:
    assert fires(Cron(expr), "2026-01-15T12:00Z", 3) == fires(Cron(plain), "2026-01-15T12:00Z", 3)


def test_a_zone_moves_the_wall_clock() -> None:
    assert Cron("0 9 * * *").tz == "UTC"
    assert fires(Cron("0 9 * * *", tz="America/New_York"), "2026-07-01T00:00Z", 1) == ["2026-07-01T09:00-04:00"]
    assert fires(Cron("0 9 * * *", tz="Asia/Kathmandu"), "2026-07-01T00:00Z", 1) == ["2026-07-01T09:00+05:45"]


def test_the_next_instant_is_strictly_later_to_the_millisecond() -> None:
    noon = ms("2026-01-15T12:00Z")
    when = Cron("0 12 * * *")
    assert when.next_after(noon - 1) == noon
    assert when.next_after(noon) == when.next_after(noon + 999) == noon + 86_400_000
    assert when.last_before(noon) == when.last_before(noon + 1) == noon
    assert when.last_before(noon - 1) == noon - 86_400_000


@pytest.mark.parametrize(
    ("macro", "expr"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("  @Daily ", "0 0 * * *"),
    ],
)
def test_a_macro_is_written_out(macro: str, expr: str) -> None:
    assert str(Cron(macro)) == expr
    assert Cron(macro) == Cron(expr)


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("0\xa09 *\u2003* tue", "0 9 * * tue"),
        ("\x850 9 * * tue\u3000", "0 9 * * tue"),
        ("0 9 * * TUE,Thu", "0 9 * * tue,thu"),
        ("  0\t9 *  * mon-FRI\n", "0 9 * * mon-fri"),
        ("0 0 l JAN-Mar *", "0 0 L jan-mar *"),
        ("0 0 lw * *", "0 0 LW * *"),
        ("0 0 * * 5l", "0 0 * * 5L"),
        ("0 0 * * Fri#2", "0 0 * * fri#2"),
        ("0 0 L,15 jul sun", "0 0 L,15 jul sun"),
    ],
)
def test_an_expression_has_one_spelling(given: str, canonical: str) -> None:
    assert str(Cron(given)) == canonical
    assert Cron(given) == Cron(canonical)
    assert hash(Cron(given)) == hash(Cron(canonical))


def test_it_shows_itself_as_what_makes_it() -> None:
    assert repr(Cron("0 9 * * TUE", tz="Europe/Paris")) == "Cron('0 9 * * tue', tz='Europe/Paris')"


def test_it_differs_by_expression_and_by_zone() -> None:
    assert len({Cron("0 9 * * *"), Cron("0 9 * * *"), Cron("0 9 * * *", tz="Europe/Paris"), Cron("1 9 * * *")}) == 3
    assert Cron("0 9 * * *") != "0 9 * * *"


def test_it_cannot_be_changed() -> None:
    when = Cron("0 9 * * *")
    with pytest.raises(AttributeError, match="immutable"):
        when.tz = "Europe/Paris"
    with pytest.raises(AttributeError):
        setattr(when, "note", "mine")  # noqa: B010  # what a type checker would not let pass
    with pytest.raises(AttributeError):
        del when.tz
    assert copy.deepcopy(when) == copy.copy(when) == when


@pytest.mark.parametrize(
    ("expr", "shortest_ms"),
    [
        ("* * * * *", 60_000),
        ("*/7 * * * *", 240_000),
        ("0 9,17 * * *", 28_800_000),
        ("0 9 * * *", 86_400_000),
        ("*/40 * * * * *", 20_000),
    ],
)
def test_the_shortest_interval_is_that_of_the_nearest_times_of_day(expr: str, shortest_ms: int) -> None:
    assert Cron(expr).shortest_interval_ms() == shortest_ms


@pytest.mark.parametrize(
    ("expr", "field", "reason"),
    [
        ("", "expression", "five fields"),
        ("* * * *", "expression", "five fields"),
        ("* * * * * * *", "expression", "five fields"),
        ("60 * * * *", "minute", "minute '60' is invalid"),
        ("-1 * * * *", "minute", "minute '-1' is invalid"),
        ("* 24 * * *", "hour", "hour '24' is invalid"),
        ("* * 0 * *", "day-of-month", "day-of-month '0' is invalid"),
        ("* * 32 * *", "day-of-month", "day-of-month '32' is invalid"),
        ("* * 5, * *", "day-of-month", "day-of-month '5,' is invalid"),
        ("* * * 13 *", "month", "month '13' is invalid"),
        ("* * * foo *", "month", "month 'foo' is invalid"),
        ("* * * * 8", "day-of-week", "day-of-week '8' is invalid"),
        ("* * * * fri-mon", "day-of-week", "day-of-week 'fri-mon' is invalid"),
        ("* * * * mon#6", "day-of-week", "day-of-week 'mon#6' is invalid"),
        ("60 * * * * *", "second", "second '60' is invalid"),
        ("*/0 * * * *", "minute", "minute '*/0' is invalid"),
        ("5-5/0 * * * *", "minute", "minute '5-5/0' is invalid"),
        ("5-5/2/15 * * * *", "minute", "minute '5-5/2/15' is invalid"),
        ("0 0 * * 1-1/2#1", "day-of-week", "day-of-week '1-1/2#1' is invalid"),
        ("0 0 * * 0-0/5L", "day-of-week", "day-of-week '0-0/5L' is invalid"),
        ("0 0 L/2 * *", "day-of-month", "write L or LW alone"),
        ("5- * * * *", "minute", "minute '5-' is invalid"),
        ("1,,2 * * * *", "minute", "minute '1,,2' is invalid"),
        ("\uff10 9 * * *", "minute", "minute '\uff10' is invalid"),  # fullwidth digits
        ("0 \u0669 * * *", "hour", "hour '\u0669' is invalid"),  # Arabic ones
        ("0 0 \u0663 * *", "day-of-month", "day-of-month '\u0663' is invalid"),
        ("0 0 * * \u00b2L", "day-of-week", "day-of-week '\u00b2L' is invalid"),  # a superscript
        ("0\x00 9 * * *", "minute", "minute '0\\x00' is invalid"),
        ("0 0 30 2 *", "day-of-month", "none of the months has a day 30"),
        ("0 0 31 2,4,6,9,11 *", "day-of-month", "none of the months has a day 31"),
        ("0 0 30-31 feb *", "day-of-month", "none of the months has a day 30-31"),
        ("0 0 8-31 * */7#1", "day-of-week", "day-of-week '*/7#1' is invalid"),
        ("0 0 1 2 */2#5", "day-of-week", "day-of-week '*/2#5' is invalid"),
        ("@reboot", "expression", "@every"),
        ("@dialy", "expression", "@daily"),
        ("0 12 * * ? *", "expression", "EventBridge"),
        ("0 12 ? * 2-6 *", "expression", "EventBridge"),
    ],
)
def test_what_does_not_read_is_refused_with_the_part_at_fault(expr: str, field: str, reason: str) -> None:
    with pytest.raises(InvalidWhen) as caught:
        Cron(expr)
    assert (caught.value.field, caught.value.text) == (field, expr)
    assert reason in caught.value.reason
    assert reason in str(caught.value)


@pytest.mark.parametrize("expr", ["every Day", "0 9 * * MONDAY", "0  0 30 Feb *", "0 12 ? * MON-FRI *", "@Reboot"])
def test_the_error_shows_the_text_as_it_was_given(expr: str) -> None:
    with pytest.raises(InvalidWhen) as caught:
        Cron(expr)
    assert caught.value.text == expr


@pytest.mark.parametrize("expr", [None, 5, 5.0, True, b"0 9 * * *", ["0 9 * * *"], {"cron": "0 9 * * *"}])
def test_what_is_not_text_is_refused(expr: object) -> None:
    with pytest.raises(InvalidWhen, match=r"is a \w+: write a cron expression as text") as caught:
        Cron(expr)  # type: ignore[arg-type]
    assert (caught.value.field, caught.value.text) == ("expression", str(expr))


@pytest.mark.parametrize(
    "expr",
    [
        "0 " * 100_000,
        "1," * 1_000_000 + "1 * * * *",
        "0" * 255 + "9 * * * *",
        "*" + "/1" * 120 + " * * * *",
        "9" * 247 + " * * * *",
        "0 0 " + "L," * 120 + "X * *",
    ],
    ids=lambda expr: f"{expr[:12]}...{len(expr)}",
)
def test_hostile_text_is_refused_at_once(expr: str) -> None:
    start = perf_counter()
    with pytest.raises(InvalidWhen) as caught:
        Cron(expr)
    assert perf_counter() - start < 0.5
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("expr", [",".join(["0-59/1"] * 34) + " * * * *", "0 0 29 2 " + ",".join(["1#5"] * 50), "* * 29 2 */7"])
def test_an_expression_with_much_to_do_is_computed_at_once(expr: str) -> None:
    start = perf_counter()
    when = Cron(expr, tz="Europe/Paris")
    assert when.next_after(ms("2068-03-01T00:00Z")) is not None
    assert when.last_before(ms("1932-02-01T00:00Z")) is not None
    assert perf_counter() - start < 0.5


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(UnknownTimezone, match="did you mean 'Europe/Paris'") as caught:
        Cron("0 9 * * *", tz="Europe/Pariss")
    assert (caught.value.field, caught.value.text, caught.value.name) == ("tz", "Europe/Pariss", "Europe/Pariss")


@pytest.mark.parametrize("text", ["0\x850", "\xa0", "0 9\u2028* *", "\u1680"])
def test_spaces_of_other_kinds_are_spaces_where_the_rest_does_not_read(text: str) -> None:
    with pytest.raises(InvalidWhen):
        Cron(text)
