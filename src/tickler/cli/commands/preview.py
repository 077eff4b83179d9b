"""`tickler preview`: explain an expression. Needs no store."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import JsonOption, ZoneOption
from tickler.cli.output import print_json, print_line
from tickler.cli.time_format import parse_instant, show_upcoming
from tickler.clock import SystemClock
from tickler.when import Every, MarkedInstant, in_words, load_zone, marked, parse_when

WhenArgument = Annotated[
    str, typer.Argument(metavar="WHEN", help="Such as '0 2 * * *', @daily, '@every 90m', 'weekly(tue 09:00)'.")
]
NumberOption = Annotated[int, typer.Option("-n", min=1, max=1000, help="Number of fires to show.")]
AfterTimeOption = Annotated[
    str | None, typer.Option("--after", metavar="TIME", help="Start after this time: ISO 8601, with an offset or in the zone.")
]


def command(
    when: WhenArgument,
    tz: ZoneOption = None,
    number: NumberOption = 10,
    after: AfterTimeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain an expression in words and show its next fires, with clock changes marked."""
    read = parse_when(when, tz)
    zone = tz or read.tz
    after_ms = SystemClock().now_ms() if after is None else parse_instant(after, zone, "after")
    upcoming = _in_zone(marked(read, after_ms, number), zone)
    if as_json:
        following = [each.to_json() for each in upcoming]
        print_json({"when": str(read), "tz": read.tz, "words": in_words(read), "next": following})
        return
    words = in_words(read)
    print_line(words if isinstance(read, Every) or words.startswith("never") else f"{words}, in {read.tz}")
    if not upcoming:
        print_line("never again after that time" if after else "never again")
        return
    print_line("")
    show_upcoming(upcoming, zone)


def _in_zone(upcoming: list[MarkedInstant], tz: str) -> list[MarkedInstant]:
    """Convert to `tz`: an interval has no zone of its own."""
    zone = load_zone(tz).info
    return [MarkedInstant(each.at.astimezone(zone), each.marks) for each in upcoming]
