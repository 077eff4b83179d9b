"""What does not read is refused with a suggestion, and every suggestion reads."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tickler.errors import InvalidWhen
from tickler.when import Cron, parse_when

from .effort import quick_examples

SUGGESTED = re.compile(r"write (?:[\w’ ]+ )?(?:EventBridge's )?'((?:at|cron|rate)\([^']*\)|@every [^']*|(?:CRON_)?TZ=[^']*)'")

numbers = st.integers(0, 99).map(str)
clocks = st.builds("{}{}{}".format, numbers, st.sampled_from(["", ":", ":00", ":5", ":30:00", ":30:00.5"]),
                   st.sampled_from(["", "Z", "z", "+01:00", "-5", "+0100"]))  # fmt: skip
dates = st.builds(
    "{:04}-{:02}-{:02}{}".format,
    st.integers(0, 9999),
    st.integers(0, 14),
    st.integers(0, 32),
    st.just("") | st.builds("{}{}".format, st.sampled_from(["T", " ", "t", "  "]), clocks),
)
intervals = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "every ", "@", "@every "]),
    st.integers(0, 999_999_999),
    st.sampled_from(["", " "]),
    st.sampled_from(["w", "d", "h", "m", "s", "ms", "week", "days", "hour", "minutes", "seconds", "months"]),
)
fields = st.sampled_from(["?", "*", "0", "1", "9", "31", "99", "2-6", "mon-fri", "L", "15W", "2030", "2", "feb"])
crons = st.lists(fields, min_size=1, max_size=8).map(" ".join)
prefixes = st.sampled_from(["", "TZ=Asia/Tokyo ", "CRON_TZ= ", "TZ=", "CRON_TZ=\t"])
texts = st.builds("{}{}".format, prefixes, dates | intervals | crons | st.text("0129-: T*?@everymat()/,", max_size=20))


@given(texts, st.sampled_from([None, "UTC", "Asia/Tokyo"]))
@example("2026-12-24T9:00", None)
@example("2026-12-24 09:00:00+01:00", "Asia/Tokyo")
@example("2026-02-30T09:00", None)
@example("0s", None)
@example("every 999999999 weeks", None)
@example("99 9 ? * 2 *", None)
@example("0 9 30 2 ? *", None)
@example("CRON_TZ= 0 9 * * *", None)
@quick_examples
def test_every_suggestion_reads(text: str, tz: str | None) -> None:
    try:
        parse_when(text, tz)
    except InvalidWhen as error:
        for suggested in SUGGESTED.finditer(error.reason):
            parse_when(suggested[1], None if error.reason.endswith(", without tz") or "TZ=" in suggested[1] else tz)


@pytest.mark.parametrize(
    ("text", "suggested"),
    [
        ("2026-12-24T9:00", "at(2026-12-24T09:00)"),
        ("2026-12-24 9:00:30", "at(2026-12-24T09:00:30)"),
        ("2026-12-24", "at(2026-12-24T00:00:00)"),
        ("2026-12-24T9:00 +01:00", "at(2026-12-24T09:00+01:00)"),
        ("2026-12-24T25:00", "at(2026-03-15T09:00:00)"),
        ("every 5 minutes", "@every 5m"),
        ("0 seconds", "@every 5m"),
        ("0 9 ? * 2-6 *", "cron(0 9 ? * 2-6 *)"),
        ("99 9 ? * 2-6 *", "cron(0 9 ? * MON-FRI *)"),
        ("0 9 1 1 * 2030", "cron(0 9 1 1 ? 2030)"),
        ("CRON_TZ= 0 9 * * *", "CRON_TZ=Europe/Paris 0 9 * * *"),
        ("TZ=", "TZ=Europe/Paris 0 9 * * *"),
    ],
)
def test_what_was_meant_is_suggested(text: str, suggested: str) -> None:
    with pytest.raises(InvalidWhen) as refused:
        parse_when(text)
    assert [each[1] for each in SUGGESTED.finditer(refused.value.reason)] == [suggested]
    parse_when(suggested)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CRON_TZ=Asia/Tokyo weekly(tue 09:00)",
         "'CRON_TZ=' is for cron expressions, not for weekly(…): leave out 'CRON_TZ=Asia/Tokyo', and set tz to 'Asia/Tokyo'"),
        ("TZ=Asia/Tokyo At (2026-03-15T00:00:00)",
         "'TZ=' is for cron expressions, not for at(…): leave out 'TZ=Asia/Tokyo', and set tz to 'Asia/Tokyo'"),
        ("TZ=Asia/Tokyo rate(5 minutes)", "an interval has no zone: leave out 'TZ=Asia/Tokyo'"),
        ("TZ=Asia/Tokyo @every 5m", "an interval has no zone: leave out 'TZ=Asia/Tokyo'"),
        ("CRON_TZ= 0 9 * * *",
         "'CRON_TZ=' names no zone: write 'CRON_TZ=Europe/Paris 0 9 * * *', or leave out 'CRON_TZ=' and set tz"),
    ],
)  # fmt: skip
def test_a_zone_in_front_of_what_takes_none_is_refused_with_the_field_that_takes_it(text: str, says: str) -> None:
    for read in (parse_when, Cron):
        with pytest.raises(InvalidWhen) as refused:
            read(text)
        assert (refused.value.field, refused.value.reason) == ("tz", says)
