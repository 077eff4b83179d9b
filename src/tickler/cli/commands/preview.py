"""`tickler preview`: an expression in words, and when it fires next. Needs no store."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import JsonOption, ZoneOption
from tickler.cli.output import answer, say
from tickler.cli.time_format import read_moment, show_upcoming, upcoming_json
from tickler.clock import SystemClock
from tickler.when import Every, MarkedInstant, When, in_words, load_zone, marked, parse_when

WhenArgument = Annotated[
    str, typer.Argument(metavar="WHEN", help="Such as '0 2 * * *', @daily, '@every 90m', 'weekly(tue 09:00)'.")
]
NumberOption = Annotated[int, typer.Option("-n", min=1, max=1000, help="How many fires to show.")]
AfterTimeOption = Annotated[
    str | None, typer.Option("--after", metavar="TIME", help="Those after this: ISO 8601, in the zone or with an offset.")
]


def command(
    when: WhenArgument,
    tz: ZoneOption = None,
    number: NumberOption = 10,
    after: AfterTimeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say in words when something fires, and show the next times, marked where the clock goes forward or back."""
    read = parse_when(when, tz)
    zone = tz or read.tz
    after_ms = SystemClock().now_ms() if after is None else read_moment(after, zone, "after")
    upcoming = _there(marked(read, after_ms, number), zone)
    if as_json:
        answer({"when": str(read), "tz": read.tz, "words": in_words(read), "next": upcoming_json(upcoming)})
        return
    say(_sentence(read))
    if not upcoming:
        say("never again after that time" if after else "never again")
        return
    say("")
    show_upcoming(upcoming, zone)


def _sentence(when: When) -> str:
    """With the zone, where there are wall times in it."""
    words = in_words(when)
    return words if isinstance(when, Every) or words.startswith("never") else f"{words}, in {when.tz}"


def _there(found: list[MarkedInstant], tz: str) -> list[MarkedInstant]:
    """An interval has no zone, and is shown in the one that was asked for."""
    zone = load_zone(tz).info
    return [MarkedInstant(each.at.astimezone(zone), each.marks) for each in found]
