"""Describes cron expressions in English: common patterns as people say them, all others field by field.

docs/decisions/0025 says why this is not `CronSim.explain()`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise, product

from tickler.when.cron_fields import EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, LAST, LAST_WEEKDAY, FieldValues

MAX_CLOCKS = 4  # more times of day are not listed one by one
MIN_RUN = 3  # fewer consecutive numbers are not written as a range
MIN_STEPS = 4

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June",
          "July", "August", "September", "October", "November", "December")  # fmt: skip

_NTH = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", LAST: "last"}
_EVERY_60 = frozenset(range(60))
_EVERY_HOUR = frozenset(range(24))
_WORKDAYS = frozenset(range(1, 6))


def cron_in_words(values: FieldValues) -> str:
    """Describe the fields. Expressions that differ in times of day, days, months or years get different descriptions."""
    dates = _dates(values)
    if values.hours == _EVERY_HOUR:  # "every 5 minutes" needs no "every day"
        dates = dates.removeprefix("every day").lstrip()
    return f"{_times(values)} {dates}".rstrip() + _in_years(values.years)


# Times of day.


def _times(values: FieldValues) -> str:
    seconds, minutes, hours = values.seconds, values.minutes, values.hours
    if len(seconds) * len(minutes) * len(hours) <= MAX_CLOCKS:
        clocks = sorted(hour * 3600 + minute * 60 + second for hour, minute, second in product(hours, minutes, seconds))
        return f"at {listed([clock(each) for each in clocks])}"
    if len(seconds) > 1:
        return _interval_of_seconds(values) or _by_field(values)
    (second,) = seconds
    regular = _interval_of_minutes(minutes, hours) or _interval_of_hours(minutes, hours)
    if regular is None:
        return _by_field(values)
    return f"{regular.replace('on the hour', 'at minute 0')} at second {second}" if second else regular


def _interval_of_seconds(values: FieldValues) -> str | None:
    """Describe a regular interval of seconds over whole minutes; None if it is not regular."""
    step = _even_step(values.seconds)
    if step is None:
        return None
    every, first = _every(step, "second"), min(values.seconds)
    if values.minutes == _EVERY_60 and values.hours == _EVERY_HOUR:
        return every + (f" from second {first} of the minute on" if first else "")
    whole_hours = values.minutes == _EVERY_60 and _is_run(values.hours)
    if not whole_hours and not (len(values.hours) == 1 and _is_run(values.minutes)):
        return None
    start = min(values.hours) * 3600 + min(values.minutes) * 60 + first
    end = max(values.hours) * 3600 + max(values.minutes) * 60 + max(values.seconds)
    return f"{every} from {clock(start, seconds=True)} to {clock(end, seconds=True)}"


def _interval_of_minutes(minutes: Collection[int], hours: Collection[int]) -> str | None:
    """Describe a regular interval of minutes over whole hours; None if it is not regular."""
    step = _even_step(minutes)
    if step is None:
        return None
    every, first = _every(step, "minute"), min(minutes)
    if _is_run(hours) and len(hours) < 24:
        return f"{every} from {clock(min(hours) * 3600 + first * 60)} to {clock(max(hours) * 3600 + max(minutes) * 60)}"
    begins = f" from minute {first} of the hour on" if first else ""
    return every + begins + ("" if len(hours) == 24 else f" in the hours {_numbers(hours)}")


def _interval_of_hours(minutes: Collection[int], hours: Collection[int]) -> str | None:
    """Describe a regular interval of hours at one minute; None if it is not regular."""
    if len(minutes) > 1 or (step := _step(hours)) is None:
        return None
    (minute,) = minutes
    if len(hours) == 24:
        return f"every hour at minute {minute}" if minute else "every hour on the hour"
    return f"{_every(step, 'hour')} from {clock(min(hours) * 3600 + minute * 60)} to {clock(max(hours) * 3600 + minute * 60)}"


def _by_field(values: FieldValues) -> str:
    parts = [
        _field("second", values.seconds, _EVERY_60) if values.seconds != {0} else "",
        _field("minute", values.minutes, _EVERY_60),
        _field("hour", values.hours, _EVERY_HOUR),
    ]
    return "at " + " of ".join(filter(None, parts))


def _field(name: str, numbers: Collection[int], all_of_them: Collection[int]) -> str:
    if numbers == all_of_them:
        return f"every {name}"
    return f"{name}{'' if len(numbers) == 1 else 's'} {_numbers(numbers)}"


def _even_step(numbers: Collection[int]) -> int | None:
    """Return the step of numbers that are evenly spread over sixty, so that the interval continues across the boundary."""
    step = _step(numbers)
    return step if step is not None and 60 % step == 0 and len(numbers) == 60 // step else None


def _every(step: int, unit: str) -> str:
    return f"every {unit}" if step == 1 else f"every {step} {unit}s"


# Days.


def _dates(values: FieldValues) -> str:
    every_day, every_weekday = values.days >= EVERY_DAY, values.weekdays >= EVERY_WEEKDAY
    if (every_day and every_weekday) or (not values.both and (every_day or every_weekday)):
        return _within("every day", values.months)
    if every_day:
        return _on_weekdays(values)
    if every_weekday:
        return _on_days(values)
    if values.both:
        return f"{_on_days(values)}, if that is {_one_of_weekdays(values)}"
    return f"{_on_days(values)} and also {_on_weekdays(values)}"


def _on_days(values: FieldValues) -> str:
    numbers = sorted(day for day in values.days if day > 0)
    if len(values.days) == len(numbers) == len(values.months) == 1 and values.nearest is None:
        return f"on {numbers[0]} {MONTHS[min(values.months) - 1]}"
    parts = [f"day{'' if len(numbers) == 1 else 's'} {_numbers(numbers)}"] if numbers else []
    parts += ["the last day"] if LAST in values.days else []
    parts += ["the last weekday"] if LAST_WEEKDAY in values.days else []
    parts += [f"the weekday nearest to day {values.nearest}"] if values.nearest is not None else []
    return f"on {listed(parts)} of {_of_months(values.months)}"


def _on_weekdays(values: FieldValues) -> str:
    plain, nth = _weekdays(values)
    if not plain:
        return f"on {listed(nth)} of {_of_months(values.months)}"
    if nth:
        return _within(f"on {listed([f'{WEEKDAYS[day]}s' for day in plain] + nth)} of the month", values.months)
    return _within(on_weekdays(plain), values.months)


def on_weekdays(days: Sequence[int]) -> str:
    """Describe days of the week, given in ascending order with Monday as 0."""
    if {day + 1 for day in days} == _WORKDAYS:
        return "on weekdays"
    if len(days) >= MIN_RUN and _is_run(days):
        return f"from {WEEKDAYS[days[0]]} to {WEEKDAYS[days[-1]]}"
    return f"on {listed([f'{WEEKDAYS[day]}s' for day in days])}"


def _one_of_weekdays(values: FieldValues) -> str:
    plain, nth = _weekdays(values)
    ordinary = ["a weekday"] if {day + 1 for day in plain} == _WORKDAYS else [f"a {WEEKDAYS[day]}" for day in plain]
    return listed(ordinary + [f"{each} of the month" for each in nth], "or")


def _weekdays(values: FieldValues) -> tuple[list[int], list[str]]:
    """Return the days that match every week, with Monday as 0, and descriptions such as "the second Monday"."""
    plain = sorted((day + 6) % 7 for day in values.weekdays if isinstance(day, int))
    pairs = [((day[0] + 6) % 7, day[1]) for day in values.weekdays if isinstance(day, tuple)]
    ordered = sorted(pairs, key=lambda pair: (pair[0], list(_NTH).index(pair[1])))
    return plain, [f"the {_NTH[nth]} {WEEKDAYS[day]}" for day, nth in ordered if day not in plain]


def _within(days: str, months: Collection[int]) -> str:
    return days if months == EVERY_MONTH else f"{days} {_months(months, 'from', 'in ')}"


def _of_months(months: Collection[int]) -> str:
    return "the month" if months == EVERY_MONTH else _months(months, "each month from", "")


def _months(months: Collection[int], before_run: str, before_list: str) -> str:
    names = [MONTHS[month - 1] for month in sorted(months)]
    is_run = len(names) >= MIN_RUN and _is_run(months)
    return f"{before_run} {names[0]} to {names[-1]}" if is_run else f"{before_list}{listed(names)}"


def _in_years(years: Collection[int] | None) -> str:
    if years is None:
        return ""
    run = len(years) >= MIN_RUN and _is_run(years)
    return f", from {min(years)} to {max(years)}" if run else f", in {_numbers(years)}"


# Numbers.


def clock(second: int, *, seconds: bool = False) -> str:
    """Format a time of day, without seconds if they are 0 and not required."""
    text = f"{second // 3600:02}:{second // 60 % 60:02}"
    return f"{text}:{second % 60:02}" if seconds or second % 60 else text


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Join parts as in "one, two and three"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def _numbers(numbers: Collection[int]) -> str:
    ordered = sorted(numbers)
    step = _step(ordered)
    if step is not None and step > 1 and len(ordered) >= MIN_STEPS:
        return f"{ordered[0]} to {ordered[-1]} in steps of {step}"
    parts: list[str] = []
    for run in _runs(ordered):
        parts += [f"{run[0]} to {run[-1]}"] if len(run) >= MIN_RUN else [str(each) for each in run]
    return listed(parts)


def _runs(ordered: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in ordered:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _is_run(numbers: Collection[int]) -> bool:
    return max(numbers) - min(numbers) == len(numbers) - 1


def _step(numbers: Collection[int]) -> int | None:
    """Return the distance between neighbours if it is the same for all, or else None."""
    apart = {later - earlier for earlier, later in pairwise(sorted(numbers))}
    return apart.pop() if len(apart) == 1 else None
