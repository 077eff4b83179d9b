"""Random whens, in every spelling that is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from hypothesis import assume
from hypothesis import strategies as st

from tickler.errors import InvalidWhen
from tickler.when import At, Cron, Every, Weekly, When

from .changes import WEEKDAYS
from .transitions import ZONES, Transition, transitions

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAY = timedelta(days=1)
CRON_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
RESTLESS_ZONES = (
    "Africa/Casablanca",
    "America/Havana",
    "America/New_York",
    "America/Sao_Paulo",
    "Antarctica/Troll",
    "Antarctica/Vostok",
    "Asia/Gaza",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Pacific/Apia",
    "Pacific/Kiritimati",
)

zones = st.sampled_from(["UTC", *ZONES])
instants = st.integers(*(int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1000 for year in (1972, 2090)))
anchors = st.one_of(st.none(), instants.filter(lambda ms: ms >= 100_000_000_000))  # not seconds taken for milliseconds
spellings = st.sampled_from([str.lower, str.upper, str.title])


@st.composite
def field(draw: st.DrawFn, low: int, high: int, names: tuple[str, ...] = (), extra: tuple[str, ...] = ()) -> str:
    """One field: stars, numbers or names, ranges, steps, the field's own extras, and lists of all of them."""
    item = st.one_of(_span(low, high), _range(low, high, names), st.sampled_from(extra) if extra else st.nothing())
    return draw(st.one_of(st.just("*"), item, st.lists(item, min_size=2, max_size=4).map(",".join)))


def _span(low: int, high: int) -> st.SearchStrategy[str]:
    stars = st.integers(1, high).map("*/{}".format)
    open_ended = st.tuples(st.integers(low, high), st.integers(1, high)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    return st.one_of(stars, open_ended)


@st.composite
def _range(draw: st.DrawFn, low: int, high: int, names: tuple[str, ...]) -> str:
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    spell = draw(spellings)
    named = bool(names) and last - low < len(names) and draw(st.booleans())
    ends = [spell(names[end - low]) if named else str(end) for end in (first, last)]
    step = draw(st.integers(1, high))
    forms = [ends[0], "-".join(ends)]
    if last > first:  # cronsim reads 5-5/10 as 5/10, and we do not: test_cron has it
        forms.append(f"{'-'.join(ends)}/{step}")
    return draw(st.sampled_from(forms))


nth_weekdays = tuple(f"{day}#{nth}" for day in (0, 3, 7, "mon", "FRI") for nth in range(1, 6))
last_weekdays = tuple(f"{day}L" for day in range(8))
days = field(1, 31, extra=("L", "LW", "l", "lw"))
weekdays = st.one_of(st.just("*"), field(0, 7, CRON_WEEKDAYS, extra=nth_weekdays + last_weekdays))
calendars = st.tuples(days, field(1, 12, MONTHS), weekdays)
times = st.tuples(field(0, 59), field(0, 23))


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Cron expressions that name a date, of five fields or six."""
    seconds = draw(st.one_of(st.just(()), st.tuples(field(0, 59))))
    text = " ".join((*seconds, *draw(times), *draw(calendars)))
    try:
        Cron(text)
    except InvalidWhen as error:
        assume(error.field != "day-of-month")  # such as 30 February
        raise
    return text


@st.composite
def plain_expressions(draw: st.DrawFn) -> str:
    """Five fields of numbers, ranges, steps and lists: what the oracle reads."""
    weekday = st.one_of(st.just("*"), field(0, 7))
    return " ".join((*draw(times), draw(field(1, 28)), draw(field(1, 12)), draw(weekday)))


@st.composite
def eventbridge_expressions(draw: st.DrawFn) -> str:
    """EventBridge's, with one of the two day fields given, that name a date."""
    years = draw(st.one_of(st.just("*"), field(2000, 2050)))
    nearest = st.integers(1, 31).map("{}W".format)
    day = draw(st.one_of(st.just("*"), field(1, 31), nearest, st.sampled_from(("L", "LW"))))
    weekday_alone = st.tuples(st.sampled_from(("1", "7", "SUN", "fri")), st.sampled_from(("L", "#1", "#3", "#5"))).map("".join)
    weekday = draw(st.one_of(st.just("*"), _range(1, 7, CRON_WEEKDAYS).filter(lambda item: "/" not in item), weekday_alone))
    given = draw(st.sampled_from(((day, "?"), ("?", weekday))))
    text = " ".join((*draw(times), given[0], draw(field(1, 12, MONTHS)), given[1], years))
    try:
        Cron(f"cron({text})")
    except InvalidWhen as error:
        assume(error.field != "day-of-month")  # such as 30 February, or 29 February in years that have none
        raise
    return f"cron({text})"


crons = st.builds(Cron, expressions(), tz=zones)
eventbridge_crons = st.builds(Cron, eventbridge_expressions(), tz=zones)
clocks = st.times().map(lambda time: f"{time:%H:%M}" if time.second % 2 else f"{time:%H:%M:%S}")
plans = st.dictionaries(st.sampled_from(WEEKDAYS), st.one_of(st.none(), clocks, st.lists(clocks, max_size=4)))
weeklies = st.builds(Weekly, plans, tz=zones)
moments = st.builds(At, st.datetimes(datetime(1972, 1, 1), datetime(2090, 1, 1)), tz=zones)
intervals = st.floats(1, 10**7).map(lambda seconds: round(seconds, 3))
everys = st.builds(Every, seconds=intervals, start=anchors)
whens: st.SearchStrategy[When] = st.one_of(crons, eventbridge_crons, weeklies, moments, everys)


@lru_cache
def changes_of(zone: str) -> list[Transition]:
    return transitions(zone)


@st.composite
def changing_times(draw: st.DrawFn) -> tuple[When, int]:
    """A when with wall times, and an instant within a day and a half of a change of its zone's clock."""
    zone = draw(st.sampled_from(RESTLESS_ZONES))
    change = draw(st.sampled_from(changes_of(zone)))
    at = change.at * 1000 + draw(st.integers(-36 * 3_600_000, 36 * 3_600_000))
    wall = datetime.fromtimestamp(change.at + change.before, UTC).replace(tzinfo=None) + draw(st.timedeltas(-DAY, DAY))
    here = st.just(zone)
    cron = st.one_of(expressions(), eventbridge_expressions())
    kinds = st.builds(Cron, cron, tz=here), st.builds(Weekly, plans, tz=here), st.builds(At, st.just(wall), tz=here)
    return draw(st.one_of(*kinds)), at


questions: st.SearchStrategy[tuple[When, int]] = st.one_of(st.tuples(whens, instants), changing_times())
