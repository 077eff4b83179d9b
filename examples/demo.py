"""A live look at Tickler: thousands of schedules sleep in a SQLite file, and once a second we ask which of them are due.

    make run        or        python examples/demo.py --schedules 20000 --seconds 60 --store sqlite:///demo.db

What matters is `claim_all`: it gets what is due, and nobody else does. The rest makes up schedules, counts, and draws.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.progress import track
from rich.table import Column, Table
from rich.text import Text

import tickler
from tickler import At, Cron, Every, IndexRow, Schedule, StoredSchedule, Tickler, TicklerError, Weekly, When

AHEAD_MS = 10 * 60_000
BATCH = 250
ROWS = 60  # more than fit on a screen; what does not is cut off
BLOCKS = " ▁▂▃▄▅▆▇█"

NAMES = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron")
OWNERS = [f"{name}-{trade}" for trade in ("books", "cafe", "labs", "press", "shop", "studio") for name in NAMES]
CITIES = {
    "America": ("Los_Angeles", "Denver", "Chicago", "New_York", "St_Johns", "Sao_Paulo"),
    "Europe": ("London", "Paris", "Athens"),
    "Asia": ("Dubai", "Kolkata", "Tokyo"),
    "Australia": ("Adelaide", "Sydney"),
}
ZONES = [f"{area}/{city}" for area, cities in CITIES.items() for city in cities]

# What products have. A schedule's number `n` takes the place of chance, so that every run is alike.
KINDS: dict[str, Callable[[int, str, int], When]] = {
    "digest": lambda n, tz, now_s: Cron(f"{n % 4 * 15} {7 + n % 3} * * mon-fri", tz=tz),
    "post": lambda n, tz, now_s: Weekly({"tue": f"{8 + n % 9:02}:00", "thu": ["09:00", "17:30"], "mon": None}, tz=tz),
    "price": lambda n, tz, now_s: Cron("0 0 * * *", tz=tz),
    "sync": lambda n, tz, now_s: Cron("*/5 * * * *", tz=tz),
    "check": lambda n, tz, now_s: Cron(f"{n % 60} */{2 + n // 60 % 3} * * * *", tz=tz),  # six fields: the first is the second
    "heartbeat": lambda n, tz, now_s: Every(seconds=10 + n * 7 % 81, start=(now_s - n * 13 % 89) * 1000),
    "reminder": lambda n, tz, now_s: At(datetime.fromtimestamp(now_s + 5 + n * 37 % 599, UTC)),
}
MIX = 2 * ["heartbeat"] + 3 * ["digest"] + 2 * ["post"] + 2 * ["price"] + 2 * ["check"] + ["sync", "reminder"]  # for one account


def make_schedule(n: int, now_s: int) -> Schedule:
    account, place = divmod(n, len(MIX))
    kind, tz = MIX[place], ZONES[account % len(ZONES)]
    owner, paused = OWNERS[account % len(OWNERS)], n % 23 == 22
    return Schedule(owner=owner, key=f"{kind}-{n}", when=KINDS[kind](n, tz, now_s), enabled=not paused)


async def write_schedules(t: Tickler, count: int, console: Console) -> None:
    starts = range(0, count, BATCH)
    for start in track(starts, f"writing {count:,} schedules", console=console, transient=True, disable=not console.is_terminal):
        now_s = now_ms() // 1000
        await t.schedules.put_many(make_schedule(n, now_s) for n in range(start, min(start + BATCH, count)))


async def read_schedules(t: Tickler) -> list[StoredSchedule]:
    page = await t.schedules.list(limit=1000)
    found = page.items
    while page.next is not None:
        page = await t.schedules.list(limit=1000, after=page.next)
        found += page.items
    return found


async def claim_all(t: Tickler, at_ms: int) -> list[IndexRow]:
    """In rounds, until nothing is due. Each row is ours alone, and has moved on to its next instant in the index."""
    claimed: list[IndexRow] = []
    while rows := await t.index.claim_due(at_ms, limit=500):
        claimed += rows
    return claimed


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def next_second() -> int:
    """Wait until the wall clock itself begins a new second, so that the beat cannot drift."""
    await asyncio.sleep((1000 - now_ms() % 1000) / 1000)
    return now_ms()


def next_fire(row: IndexRow, after_ms: int) -> int | None:
    nominal_at = row.when.next_after(after_ms - row.offset_ms)
    if nominal_at is None or (row.ends_at is not None and nominal_at > row.ends_at):
        return None
    return nominal_at + row.offset_ms


class Forecast:
    """The fires of the coming ten minutes. A look costs what comes into sight, not what exists."""

    def __init__(self, rows: Iterable[IndexRow]) -> None:
        self.fires: defaultdict[int, list[int]] = defaultdict(list)  # by instant, the schedules that fire then
        self._out_of_sight = [(row.next_fire_at, number, row) for number, row in enumerate(rows)]
        heapify(self._out_of_sight)

    def look(self, at_ms: int) -> int:
        """Bring into sight what lies ahead, and drop what has come: how many schedules are due."""
        while self._out_of_sight and self._out_of_sight[0][0] <= at_ms + AHEAD_MS:
            fire_at, number, row = heappop(self._out_of_sight)
            self.fires[fire_at].append(number)
            following = next_fire(row, max(fire_at, at_ms))
            if following is not None:
                heappush(self._out_of_sight, (following, number, row))
        past = [fire_at for fire_at in self.fires if fire_at <= at_ms]
        return len({number for fire_at in past for number in self.fires.pop(fire_at)})


class Story:
    """What happened so far: all that is shown."""

    def __init__(self) -> None:
        self.at_ms = self.asleep = self.paused = self.due = self.claimed = self.claimed_in_all = 0
        self.took_ms: list[float] = []
        self.latest: deque[tuple[IndexRow, int]] = deque(maxlen=ROWS)  # with how late each was found
        self.forecast = Forecast([])

    def begin(self, schedules: list[StoredSchedule]) -> None:
        active = [(s, s.next_fire_at) for s in schedules if s.next_fire_at is not None]
        self.forecast = Forecast(IndexRow(s.owner, s.key, s.when, at, s.ends_at, s.offset_ms()) for s, at in active)
        self.asleep = len(active)
        self.paused = sum(s.state == "paused" for s in schedules)

    async def tick(self, t: Tickler, at_ms: int) -> None:
        started = time.perf_counter()
        rows = await claim_all(t, at_ms)
        self.took_ms.append((time.perf_counter() - started) * 1000)
        found_at = now_ms()
        self.latest.extendleft((row, found_at - row.next_fire_at) for row in rows)
        self.at_ms, self.due, self.claimed = at_ms, self.forecast.look(at_ms), len(rows)
        self.claimed_in_all += len(rows)
        self.asleep -= sum(next_fire(row, at_ms) is None for row in rows)

    def figures(self) -> dict[str, Text]:
        return {
            "UTC": Text(clock(self.at_ms), "bold"),
            "asleep": Text(f"{self.asleep:,}", "bold blue"),
            "paused": Text(f"{self.paused:,}", "blue"),
            "due": Text(f"{self.due:,}", "bold yellow"),
            "claimed": Text(f"{self.claimed:,}", "bold green"),
            "in all": Text(f"{self.claimed_in_all:,}", "green"),
            "claim took": Text(f"{self.took_ms[-1]:.1f} ms", "bold magenta"),
        }

    def summary(self) -> str:
        if not self.took_ms:
            return "stopped before the first tick: nothing was claimed"
        return (
            f"ticks: {len(self.took_ms):,}; claimed: {self.claimed_in_all:,}; still asleep: {self.asleep:,}; "
            f"a tick's claims took {median(self.took_ms):.1f} ms at the median, {max(self.took_ms):.1f} ms at most"
        )


def screen(story: Story, width: int, height: int) -> Layout:
    ahead_height = height // 3 + 1
    head = Panel(figures(story), title="[bold]tickler[/]: which schedules are due right now?", border_style="cyan")
    fires = Panel(last_fires(story), title="last fires", subtitle="[dim]Ctrl-C leaves[/]")
    ahead = Panel(chart(story, max(width - 32, 1), ahead_height - 2), title="fires in the coming ten minutes")
    layout, bottom = Layout(), Layout(size=ahead_height)
    layout.split_column(Layout(head, size=4), Layout(fires), bottom)
    bottom.split_row(Layout(Panel(coming(story), title="next"), size=28), Layout(ahead))
    return layout


def figures(story: Story) -> Table:
    shown = story.figures()
    table = Table.grid(*(Column(justify="center", no_wrap=True, ratio=1) for _ in shown), expand=True)
    table.add_row(*shown.values())
    table.add_row(*(Text(name, "dim") for name in shown))
    return table


def last_fires(story: Story) -> Table:
    table = plain_table({"owner": 12, "key": 15, "when": None, "nominal time": 24, "late": 7})
    for row, late_ms in story.latest:
        nominal = datetime.fromtimestamp(row.nominal_at / 1000, ZoneInfo(row.timezone))
        city = row.timezone.rpartition("/")[2].replace("_", " ")
        late = Text(f"{late_ms} ms", "green") if late_ms < 1000 else Text(f"{late_ms // 1000:,} s", "red")
        table.add_row(Text(row.owner, "cyan"), Text(row.key), Text(str(row.when), "dim"), f"{nominal:%a %H:%M:%S} {city}", late)
    return table


def coming(story: Story) -> Table:
    table = plain_table({"UTC": 8, "in": None, "schedules": 9})
    for fire_at in sorted(story.forecast.fires)[:ROWS]:
        wait_s = -(-(fire_at - story.at_ms) // 1000)
        table.add_row(clock(fire_at), f"{wait_s:3} s", Text(f"{len(story.forecast.fires[fire_at]):,}", "yellow"))
    return table


def plain_table(widths: dict[str, int | None]) -> Table:
    """The column without a width takes what is left; the last one is a number."""
    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for name, width in widths.items():
        table.add_column(name, width=width, ratio=None if width else 1, no_wrap=True)
    table.columns[-1].justify = "right"
    return table


def chart(story: Story, columns: int, rows: int) -> Text:
    """Bars of whole seconds that stand on the clock: they wander to the left and keep their shape."""
    bar_ms = -(-AHEAD_MS // columns // 1000) * 1000
    counts: Counter[int] = Counter()
    for fire_at, schedules in story.forecast.fires.items():
        counts[fire_at // bar_ms - story.at_ms // bar_ms] += len(schedules)
    bars = [counts[bar] for bar in range(AHEAD_MS // bar_ms)]
    drawn = Text("\n".join(bar_lines(bars, rows - 1)) + "\n", "cyan", no_wrap=True)
    scale = f" at most {max(bars):,} in {bar_ms // 1000} s ".center(len(bars) - len("now+10 min"))
    return drawn.append(f"now{scale}+10 min", "dim")


def bar_lines(counts: list[int], rows: int) -> list[str]:
    """Columns of block characters, eight steps a row; whatever is not nothing shows."""
    peak = max(*counts, 1)
    steps = [-(-count * rows * 8 // peak) for count in counts]
    return ["".join(BLOCKS[min(max(step - row * 8, 0), 8)] for step in steps) for row in reversed(range(rows))]


def clock(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%H:%M:%S}"


async def watch(t: Tickler, story: Story, seconds: int | None, console: Console) -> None:
    drawn = console.is_terminal and not console.is_dumb_terminal
    with Live(console=console, screen=True, auto_refresh=False) if drawn else nullcontext() as live:
        while seconds is None or len(story.took_ms) < seconds:
            await story.tick(t, await next_second())
            if live is not None:
                live.update(screen(story, *console.size), refresh=True)
            else:
                console.out("  ".join(f"{name} {figure}" for name, figure in story.figures().items()), highlight=False)


async def run(url: str, count: int, seconds: int | None, story: Story, console: Console) -> None:
    async with tickler.connect(url) as t:
        await write_schedules(t, count, console)
        story.begin(await read_schedules(t))
        await watch(t, story, seconds, console)


def main(
    schedules: Annotated[int, typer.Option(min=1, help="How many to write.")] = 5000,
    seconds: Annotated[int | None, typer.Option(min=1, help="Stop by itself after so many.")] = None,
    store: Annotated[str | None, typer.Option(help="The URL of a store; otherwise a temporary SQLite file.")] = None,
) -> None:
    """Thousands of schedules asleep, and once a second the question which of them are due."""
    console, story = Console(), Story()
    with TemporaryDirectory(prefix="tickler-demo-") as folder:
        try:
            asyncio.run(run(store or f"sqlite:///{folder}/demo.db", schedules, seconds, story, console))
        except KeyboardInterrupt:
            pass
        except TicklerError as error:
            Console(stderr=True).out(f"tickler: {error}", style="red", highlight=False)
            raise typer.Exit(1) from None
    console.out(story.summary(), highlight=False)


if __name__ == "__main__":
    typer.run(main)
