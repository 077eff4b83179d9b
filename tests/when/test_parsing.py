"""What people write and paste, and what JSON carries: it reads, or it is refused with a reason, at once."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickler.errors import InvalidInput, InvalidSchedule, InvalidWhen, UnknownTimezone
from tickler.model.schedule import Schedule
from tickler.when import At, Cron, Every, Weekly, When, parse_when, when_from_json

from .effort import examples, quick_examples
from .strategies import expressions, instants, whens

TOKYO = "Asia/Tokyo"
SAMPLES = (
    "0 9 * * tue",
    "@daily",
    "cron(0 9 ? * MON-FRI *)",
    "at(2026-03-15T00:00:00+01:00)",
    "rate(5 minutes)",
    "@every 1h30m from 2026-01-01T00:00:00Z",
    "weekly(tue 09:00, thu 09:00 17:30:15)",
)
ALPHABET = "0123456789*/-,#LW?@:()+.TZ \t\n\x00\x85\u0130\u0131\u017f\u0665\uff15\ud800" + "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("0 9 * * tue", Cron("0 9 * * tue", tz=TOKYO)),
        (" @daily ", Cron("0 0 * * *", tz=TOKYO)),
        ("cron(0 9 * * 1-5)", Cron("0 9 * * 1-5", tz=TOKYO)),
        ("CRON ( 0 9 * * 1-5 )\n", Cron("0 9 * * 1-5", tz=TOKYO)),
        ("cron(@daily)", Cron("0 0 * * *", tz=TOKYO)),
        ("cron(0 9 ? * 2-6 *)", Cron("cron(0 9 ? * 2-6 *)", tz=TOKYO)),
        ("Cron( 0 9 ?  * mon-fri * )", Cron("cron(0 9 ? * MON-FRI *)", tz=TOKYO)),
        ("CRON_TZ=Asia/Tokyo 0 9 * * tue", Cron("0 9 * * tue", tz=TOKYO)),
        (" TZ=Asia/Tokyo  @daily", Cron("0 0 * * *", tz=TOKYO)),
        ("TZ=Asia/Tokyo cron(0 9 ? * 2-6 *)", Cron("cron(0 9 ? * 2-6 *)", tz=TOKYO)),
        ("weekly(tue 9:00, thu 7:05:03)", Weekly({"tue": "09:00", "thu": "07:05:03"}, tz=TOKYO)),
        ("at(2026-03-15T00:00:00)", At("2026-03-15T00:00:00", tz=TOKYO)),
        ("At(2026-03-15 00:00)", At("2026-03-15T00:00:00", tz=TOKYO)),
        ("rate(5 minutes)", Every(minutes=5)),
        ("@every 1h30m", Every(minutes=90)),
        ("weekly(tue 09:00, thu 09:00)", Weekly({"tue": "09:00", "thu": "09:00"}, tz=TOKYO)),
        ("weekly( TUE 09:00 17:30,, )", Weekly({"tue": ["09:00", "17:30"]}, tz=TOKYO)),
        ("weekly()", Weekly({}, tz=TOKYO)),
    ],
)
def test_people_write_a_when_in_these_ways(text: str, when: When) -> None:
    assert parse_when(text, tz=TOKYO) == when
    assert when_from_json(text, tz=TOKYO) == when


@pytest.mark.parametrize("prefix", ["CRON_TZ", "TZ"])
def test_a_zone_in_the_text_is_the_zone_and_another_one_beside_it_is_refused(prefix: str) -> None:
    text = f"{prefix}=Asia/Tokyo 0 9 * * *"
    assert parse_when(text).tz == when_from_json(text).tz == Cron(text).tz == TOKYO
    assert Schedule(owner="u1", key="k", when=text).tz == TOKYO
    for other in ("Europe/Paris", "UTC"):
        with pytest.raises(InvalidWhen, match=f"names the zone 'Asia/Tokyo', and tz is '{other}'") as caught:
            parse_when(text, tz=other)
        assert caught.value.field == "tz"
    with pytest.raises(UnknownTimezone, match="Asia/Tokio"):
        parse_when(text.replace("Tokyo", "Tokio"))


def test_the_same_text_and_zone_are_computed_once() -> None:
    assert parse_when("0 9 * * tue", tz=TOKYO) is parse_when("0 9 * * tue", tz=TOKYO)
    assert parse_when("0 9 * * tue").tz == "UTC"


def test_a_weekly_plan_in_json_is_an_object() -> None:
    value = {"weekly": {"tue": {"time": "09:00"}, "mon": {"time": None}}}
    assert when_from_json(value, tz=TOKYO) == Weekly({"tue": "09:00"}, tz=TOKYO)


@pytest.mark.parametrize(
    "value", [None, 5, [], {}, {"cron": "0 9 * * *"}, {"weekly": {}, "tz": "UTC"}, {"weekly": {}, 1: 2}], ids=str
)
def test_other_json_is_refused_with_an_example(value: object) -> None:
    with pytest.raises(InvalidWhen, match="give text such as") as caught:
        when_from_json(value)
    assert (caught.value.field, caught.value.text) == ("when", str(value))


@pytest.mark.parametrize("text", [None, 5, 1.5, True, b"0 9 * * *", ["0 9 * * *"], {"weekly": {}}, object], ids=str)
def test_what_is_not_text_is_refused(text: object) -> None:
    with pytest.raises(InvalidWhen, match="write text such as") as caught:
        parse_when(text)  # type: ignore[arg-type]
    assert (caught.value.field, caught.value.text) == ("when", str(text))


PARTS = ("tz", "day-of-month", "someday", "minute", "interval")  # of a text; the others are names for all of it


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "expression"),
        ("whenever", "expression"),
        ("\x00", "expression"),
        ("cron()", "expression"),
        ("cron(0 12 * * ? *", "expression"),
        ("cron(0 12 ? * ? *)", "expression"),
        ("TZ=Asia/Tokyo", "expression"),
        ("TZ=Asia/Tokyo whenever", "expression"),
        ("TZ=Asia/Tokyo @every 5m", "tz"),
        ("@reboot", "expression"),
        ("0 0 30 2 *", "day-of-month"),
        ("at()", "moment"),
        ("at(noon)", "moment"),
        ("rate(often)", "rate"),
        ("@every day", "interval"),
        ("weekly(someday 09:00)", "someday"),
        ("every 5 minutes", "expression"),
        ("lambda(0 9 * * *)", "minute"),
    ],
)
def test_text_that_does_not_read_is_refused_with_the_part_at_fault(text: str, field: str) -> None:
    with pytest.raises(InvalidWhen) as caught:
        parse_when(text)
    assert caught.value.field == field
    about = f"in {caught.value.text!r}," if field in PARTS else f"{field} {caught.value.text!r}"
    assert str(caught.value) == f"{about} {caught.value.reason}"


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("every 5 seconds", "@every 5s"),
        ("Every 2 Hours", "@every 2h"),
        ("5s", "@every 5s"),
        ("10 minutes", "@every 10m"),
        ("@1d", "@every 1d"),
        ("@minutely", "@every 5m"),
        ("whenever", "@every 5m"),
    ],
)
def test_who_may_have_meant_an_interval_is_told_how_to_write_one(text: str, offered: str) -> None:
    with pytest.raises(InvalidWhen) as caught:
        parse_when(text)
    assert f"for an interval write '{offered}'" in caught.value.reason
    assert "parse_when" not in str(caught.value)
    assert isinstance(parse_when(offered), Every)


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("2026-03-15", "at(2026-03-15T00:00:00)"),
        ("2026-03-15T09:30", "at(2026-03-15T09:30)"),
        ("2026-03-15 09:30:00+01:00", "at(2026-03-15T09:30:00+01:00)"),
        ("2026-03-15t09:30:00z", "at(2026-03-15T09:30:00Z)"),
        ("0 9 ? * 2-6 *", "cron(0 9 ? * 2-6 *)"),
        ("0 9 1 * ? 2030", "cron(0 9 1 * ? 2030)"),
    ],
)
def test_who_may_have_meant_something_else_is_told_how_to_write_it(text: str, offered: str) -> None:
    with pytest.raises(InvalidWhen) as caught:
        parse_when(text)
    assert f"write '{offered}'" in caught.value.reason
    parse_when(offered)


@pytest.mark.parametrize("text", ["0 9 * * 1 2027", "0 12 25 12 * 2027", "0 9 1 1 * 2027-2030", "0 0 9 1 1 * 2027"])
def test_a_year_in_plain_cron_is_told_of_seconds_and_of_years(text: str) -> None:
    with pytest.raises(InvalidWhen, match="six fields begin with seconds, and none of them is a year: set starts_at and ends_at"):
        parse_when(text)


@pytest.mark.parametrize("text", ["0 0 12 ? * 2-6", "0 12 ? * 2-6", "cron(0 0 12 * ? 2-6 *)"])
def test_a_question_mark_of_other_dialects_is_not_taken_for_a_star(text: str) -> None:
    with pytest.raises(InvalidWhen, match=r"numbers begin with 0 for Sunday here|EventBridge expression: write six fields"):
        parse_when(text)


@pytest.mark.parametrize("text", ["@every 100ms", "@every 0.5s", "@every 0s"])
def test_who_asks_for_less_than_a_second_is_told_the_shortest(text: str) -> None:
    with pytest.raises(InvalidWhen, match="is too short: the shortest is '@every 1s'") as caught:
        parse_when(text)
    assert (caught.value.field, caught.value.text) == ("interval", text)


@pytest.mark.parametrize(
    ("when", "remedy"),
    [
        (timedelta(minutes=5), "is a timedelta: write Every(seconds=300)"),
        (timedelta(milliseconds=1500), "is a timedelta: write Every(seconds=1.5)"),
        (datetime(2030, 1, 1, tzinfo=UTC), "is a datetime: write At(…) around it"),
    ],
    ids=str,
)
def test_a_schedule_that_is_given_a_duration_or_a_moment_says_what_to_write(when: object, remedy: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        Schedule(owner="u1", key="k1", when=when)  # type: ignore[arg-type]
    assert str(refused.value) == f"when: {remedy}"


@pytest.mark.parametrize("text", ["0 " * 2_049, "weekly(" + "mon 09:00, " * 100_000 + ")", "a" * 10_000_000, "(" * 5_000])
def test_over_long_text_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidWhen, match="is longer than 4096 characters") as caught:
        parse_when(text)
    assert caught.value.field == "when"
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "tz",
    ["", " ", "Nowhere", "europe/paris", "UTC\x00", "\ud800", "../UTC", "/UTC"],
    ids=lambda tz: ascii(tz[:12]),
)
@pytest.mark.parametrize("text", ["0 9 * * *", "at(2026-03-15T00:00:00)", "weekly(tue 09:00)"])
def test_a_zone_that_is_none_is_refused_whatever_is_read(text: str, tz: str) -> None:
    with pytest.raises(UnknownTimezone) as caught:
        parse_when(text, tz=tz)
    assert (caught.value.field, caught.value.text, caught.value.name) == ("tz", tz, tz)


@pytest.mark.parametrize("tz", [5, b"UTC", ["UTC"], {}, object()], ids=lambda tz: type(tz).__name__)
def test_a_zone_that_is_not_text_is_refused(tz: object) -> None:
    with pytest.raises(UnknownTimezone):
        parse_when("0 9 * * *", tz=tz)  # type: ignore[arg-type]


def check(text: str, tz: str = "UTC") -> None:
    """Either it is a when that reads back, or an error of ours says what is wrong with what."""
    read = read_or_refuse(text, tz)
    if isinstance(read, InvalidWhen):
        assert isinstance(read.field, str)
        assert isinstance(read.text, str)
        assert read.reason
    else:
        assert parse_when(str(read), tz=read.tz) == read
        assert pickle.loads(pickle.dumps(read)) == read


def read_or_refuse(value: object, tz: str = "UTC") -> When | InvalidWhen:
    try:
        return when_from_json(value, tz=tz)
    except InvalidWhen as error:
        return error


@quick_examples
@given(st.text(max_size=300))
def test_any_text_reads_or_is_refused(text: str) -> None:
    check(text)


@quick_examples
@given(st.one_of(st.sampled_from(SAMPLES), expressions(), whens.map(str)), st.data())
def test_a_slip_in_good_text_reads_or_is_refused(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 3))
        text = text[:at] + data.draw(st.text(ALPHABET, max_size=3)) + text[at + cut :]
    check(text)


@quick_examples
@given(
    st.sampled_from(("rate({} days)", "@every {}h", "@every 1h from {}", "at({})", "weekly(tue {})", "cron({})", "{}")),
    st.one_of(
        st.integers(0).map(str),
        st.floats(0).map(str),
        st.datetimes().map(str),
        st.times().map(str),
        st.integers(1, 2_000).map("9".__mul__),
    ),
    st.sampled_from(("", "Z", "+14:00", "-12:00", "+23:59:59.999999", " * * * *")),
)
def test_any_number_or_moment_reads_or_is_refused(form: str, value: str, ending: str) -> None:
    check(form.format(value + ending))


@quick_examples
@given(st.sampled_from(SAMPLES), st.one_of(st.text(max_size=80), st.text("./\x00:aU\\", max_size=40)))
def test_any_zone_reads_or_is_refused(text: str, tz: str) -> None:
    check(text, tz)


@examples
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("weekly", "mon", "time", "x")), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_any_json_reads_or_is_refused(value: object) -> None:
    assert isinstance(read_or_refuse(value), When | InvalidWhen)


@examples
@given(whens, instants, st.one_of(st.none(), st.integers(-5, 5), st.floats(), st.booleans()))
def test_how_many_upcoming_is_a_number_from_zero(when: When, after: int, n: object) -> None:
    if type(n) is int and n >= 0:
        assert len(when.upcoming(n, after=max(after, 10**11))) <= n
        return
    with pytest.raises(InvalidInput, match="pass 0 or more"):
        when.upcoming(n, after=after)  # type: ignore[arg-type]


@pytest.mark.parametrize("instant", [datetime(2026, 1, 1, tzinfo=UTC), 1.5e12, "2026-01-01", None, True], ids=str)
@pytest.mark.parametrize("text", ["0 9 * * *", "*/5 * * * *", "weekly(tue 09:00)", "at(2030-01-01T00:00:00)", "@every 5m"])
def test_an_instant_that_is_not_in_milliseconds_is_refused_by_what_it_is(text: str, instant: object) -> None:
    when = parse_when(text)
    for ask in (when.next_after, when.last_before):
        with pytest.raises(InvalidInput, match="pass whole milliseconds"):
            ask(instant)  # type: ignore[arg-type]  # that is the point
