"""Monthly cost of DynamoDB for your load, compared with a single partition and a managed scheduler.

`python bench/dynamodb_cost.py --schedules 1000000 --fires-per-hour 1000000 --burst 50000 [--svg cost.svg] [--json]`

This is a calculation, not a measurement. A fire is claimed at most once, in one update of a head under 1 KB. Not counted: open
fires, deliveries, puts, lost races (a unit each), and free tiers other than the scheduler's.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from dynamodb_cost_chart import Chart, Line, Marker, draw, numbers, short

HOURS_A_MONTH = 730  # 365 * 24 / 12, as in the AWS calculator
SECONDS_A_MONTH = HOURS_A_MONTH * 3600
MILLION, GIGABYTE = 1_000_000, 1_000_000_000

# How DynamoDB counts: the developer guide's pages on capacity units and on partitions.
WRITE_UNIT_BYTES = 1024  # started kilobytes of an item or an index entry
READ_UNIT_BYTES = 4096
EVENTUAL = 0.5  # of a read unit; an index has no other reads
KEY_CHANGE_WRITES = 2  # of an index entry: one deletes the old, one writes the new
PARTITION_UNITS_PER_S = 1000  # write units of one partition; an index has its own partitions
NEW_TABLE_UNITS_PER_S = 4000  # write units of a new on-demand table or index before it has grown
STORAGE_OVERHEAD_BYTES = 100  # billed with each stored item and index entry
MAX_PAYLOAD_BYTES = 400_000  # the limit of an item is 400 KB

# How this design uses it: stores/dynamodb/layout.py and settings.py.
SHARD_UNITS_PER_S = PARTITION_UNITS_PER_S / 2  # half load: fires are not spread evenly over shards
INDEX_ENTRIES = 2  # in `due` and in `listed`; a claim moves the first
ENTRY_BYTES = 300  # a generous entry in `due`; one in `listed` is smaller
HEAD_BYTES = 320  # a head with a short target and without its payload
INLINE_BYTES = 640  # a larger head moves its body to another item, to stay at one write unit
BODY_BYTES = 60  # the keys of a body
SETTINGS_READ_S = 10  # how often a worker reads the settings

# EventBridge Scheduler's default quotas in the large regions; both can be raised on request.
SCHEDULER_INVOCATIONS_PER_S = 1000
SCHEDULER_SCHEDULES = 10_000_000

NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e12)]
Count = Annotated[int, msgspec.Meta(ge=1, le=10**12)]


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars, on demand, us-east-1, autumn 2026: the price pages of DynamoDB and of EventBridge."""

    write: NotNegative = 0.625  # a million write units
    read: NotNegative = 0.125  # a million read units
    storage: NotNegative = 0.25  # a gigabyte for a month
    scheduler: NotNegative = 1.00  # a million invocations
    free_invocations: Annotated[int, msgspec.Meta(ge=0)] = 14 * MILLION  # a month


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """`burst` of the fires of an hour fall into one window of `burst_minutes`; the rest are spread evenly."""

    schedules: Count
    fires_per_hour: Positive
    burst: NotNegative
    burst_minutes: Annotated[float, msgspec.Meta(gt=0, le=60)] = 1.0
    payload_bytes: Annotated[int, msgspec.Meta(ge=0, le=MAX_PAYLOAD_BYTES)] = 300

    @property
    def fires_a_month(self) -> float:
        return self.fires_per_hour * HOURS_A_MONTH

    @property
    def window_s(self) -> float:
        return self.burst_minutes * 60

    @property
    def beside_burst_per_s(self) -> float:
        return max(0.0, self.fires_per_hour - self.burst) / 3600

    @property
    def peak_per_s(self) -> float:
        return self.burst / self.window_s + self.beside_burst_per_s

    def scaled(self, schedules: int) -> Load:
        """Return the same load with another number of schedules."""
        factor = schedules / self.schedules
        return replace(self, schedules=schedules, fires_per_hour=self.fires_per_hour * factor, burst=self.burst * factor)


class Polling(msgspec.Struct, frozen=True, kw_only=True):
    """Every worker queries every shard at every tick; a due row is read once."""

    workers: Count = 1
    ticks_per_minute: Positive = 60.0


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """One column: dollars per month by item, and whether the design keeps up."""

    name: str
    dollars: dict[str, float]
    shards: int | None  # None if it has none
    drain_s: float | None  # a whole burst due at one instant; None: the steady load alone is too much
    verdict: str

    @property
    def total(self) -> float:
        return sum(self.dollars.values())


def write_units(item_bytes: int, entry_bytes: int, entry_writes: int = KEY_CHANGE_WRITES) -> int:
    """One update of an item that writes its index entry `entry_writes` times."""
    return math.ceil(item_bytes / WRITE_UNIT_BYTES) + entry_writes * math.ceil(entry_bytes / WRITE_UNIT_BYTES)


def write_dollars(fires_a_month: float, units: float, prices: Prices) -> float:
    return fires_a_month * units * prices.write / MILLION


def item_bytes(payload_bytes: int) -> tuple[int, int]:
    """Return the sizes of a schedule's head and body; 0 without a body."""
    whole = HEAD_BYTES + payload_bytes
    return (whole, 0) if whole <= INLINE_BYTES else (HEAD_BYTES, BODY_BYTES + payload_bytes)


def shards_needed(load: Load) -> int:
    return max(1, math.ceil(load.peak_per_s * KEY_CHANGE_WRITES / SHARD_UNITS_PER_S))


def claims_per_s(shards: int) -> float:
    """Return the throughput of all shards at full load."""
    return shards * PARTITION_UNITS_PER_S / KEY_CHANGE_WRITES


def read_units_a_month(load: Load, polling: Polling, shards: int) -> float:
    """Count empty queries, due rows, bodies to deliver, and settings."""
    queries = polling.workers * polling.ticks_per_minute / 60 * SECONDS_A_MONTH * shards
    rows = load.fires_a_month * ENTRY_BYTES / READ_UNIT_BYTES
    _, body_bytes = item_bytes(load.payload_bytes)
    bodies = load.fires_a_month * math.ceil(body_bytes / READ_UNIT_BYTES)
    settings = polling.workers * SECONDS_A_MONTH / SETTINGS_READ_S
    return EVENTUAL * (queries + rows + bodies + settings)


def stored_bytes(load: Load) -> int:
    stored = [*item_bytes(load.payload_bytes), *[ENTRY_BYTES] * INDEX_ENTRIES]
    return load.schedules * sum(size + STORAGE_OVERHEAD_BYTES for size in stored if size)


def drain_s(load: Load, fires_per_s: float) -> float | None:
    """Return the duration of a burst at `fires_per_s`; None if the fires of an hour take longer than an hour."""
    if load.fires_per_hour > fires_per_s * 3600:
        return None
    return load.burst / (fires_per_s - load.beside_burst_per_s) if load.burst else 0.0


def verdict(load: Load, drained_s: float | None, ceiling: str) -> str:
    if drained_s is None:
        return f"impossible at {ceiling}"
    late_s = drained_s - load.window_s
    return f"{duration(late_s)} late at {ceiling}" if late_s > 0 else "in time"


def on_dynamodb(name: str, load: Load, polling: Polling, prices: Prices, shards: int) -> Design:
    """Use our small heads and entries, so that only the key differs."""
    head_bytes, _ = item_bytes(load.payload_bytes)
    drained_s = drain_s(load, claims_per_s(shards))
    return Design(
        name=name,
        dollars={
            "writes": write_dollars(load.fires_a_month, write_units(head_bytes, ENTRY_BYTES), prices),
            "reads": read_units_a_month(load, polling, shards) * prices.read / MILLION,
            "storage": stored_bytes(load) / GIGABYTE * prices.storage,
        },
        shards=shards,
        drain_s=drained_s,
        verdict=verdict(load, drained_s, f"{claims_per_s(shards):,.0f} claims a second"),
    )


def managed_row_each(load: Load, prices: Prices) -> Design:
    """One EventBridge schedule per schedule, at the default quotas."""
    billed = max(0.0, load.fires_a_month - prices.free_invocations)
    drained_s = drain_s(load, SCHEDULER_INVOCATIONS_PER_S)
    judged = verdict(load, drained_s, f"the default quota, {SCHEDULER_INVOCATIONS_PER_S:,} a second")
    if load.schedules > SCHEDULER_SCHEDULES:
        judged = f"impossible at the default quota, {short(SCHEDULER_SCHEDULES)} schedules"
    return Design(
        name="a managed row each",
        dollars={"invocations": billed * prices.scheduler / MILLION},
        shards=None,
        drain_s=drained_s,
        verdict=judged,
    )


def designs(load: Load, polling: Polling, prices: Prices) -> list[Design]:
    """Ours; `status = "active"` on every item, which has one partition; and one row each in a managed scheduler."""
    return [
        on_dynamodb("this design", load, polling, prices, shards_needed(load)),
        on_dynamodb("one partition", load, polling, prices, shards=1),
        managed_row_each(load, prices),
    ]


def chart(load: Load, polling: Polling, prices: Prices) -> Chart:
    """Dollars against schedules that all fire as often as those of `load`, with `load` itself marked."""
    rate = load.fires_per_hour / load.schedules
    often = "once an hour" if rate == 1 else f"{short(rate)} times an hour" if rate > 1 else f"once in {short(1 / rate)} hours"
    free = prices.free_invocations / HOURS_A_MONTH / rate
    late, stopped = load.schedules * claims_per_s(1) / load.peak_per_s, claims_per_s(1) * 3600 / rate
    quota = min(SCHEDULER_INVOCATIONS_PER_S * 3600 / rate, SCHEDULER_SCHEDULES)
    swept = [(n, designs(load.scaled(n), polling, prices)) for n in numbers(load.schedules, [stopped], rises_from=free)]
    ours, partition, managed = ([(n, found[column].total) for n, found in swept] for column in range(3))
    within = [(n, dollars) for n, dollars in partition if n <= stopped]
    stops = f"one partition stops here, at {short(stopped)} schedules\nand 500 claims a second; bursts late from {short(late)}"
    yours, _, others = (design.total for design in designs(load, polling, prices))
    return Chart(
        title=f"Dollars a month for schedules that fire {often} each",
        subtitle=f"DynamoDB on demand at ${prices.write:g} a million writes, 3 a fire; EventBridge Scheduler at "
        f"${prices.scheduler:.2f} a million fires, {short(prices.free_invocations)} free",
        lines=[
            Line("this design", "ours", ours),
            Line("one partition", "partition", within, stops=stops if len(within) < len(partition) else ""),
            Line("a managed row each", "managed", managed, note=f"needs a raised quota\nfrom {short(quota)} schedules"),
        ],
        marker=Marker(
            load.schedules,
            dollars={"ours": yours, "managed": others},
            text=f"yours: {load.schedules:,} schedules\nthis design {money(yours)}, managed {money(others)}",
        ),
    )


def money(dollars: float) -> str:
    return f"${dollars:,.0f}" if dollars >= 100 else f"${dollars:,.2f}"


def duration(seconds: float) -> str:
    whole = math.ceil(seconds)
    hours, minutes = divmod(whole // 60, 60)
    parts = [f"{hours:,} h" if hours else "", f"{minutes} min" if minutes else "", f"{whole % 60} s" if whole % 60 else ""]
    return " ".join(part for part in parts if part) or "0 s"


def table(load: Load, polling: Polling, compared: list[Design]) -> Table:
    fires = f"{load.fires_per_hour:,.0f} fires an hour, {load.burst:,.0f} of them in {duration(load.window_s)}"
    drawn = Table(title=f"{load.schedules:,} schedules, {fires}", caption=caption(load, polling))
    drawn.title_justify = drawn.caption_justify = "left"
    drawn.add_column("")
    for design in compared:
        drawn.add_column(design.name, justify="right")
    for kind in ("writes", "reads", "storage", "invocations"):
        drawn.add_row(kind, *[money(design.dollars[kind]) if kind in design.dollars else "" for design in compared])
    drawn.add_section()
    drawn.add_row("a month", *[f"[bold]{money(design.total)}" for design in compared])
    drawn.add_row("shards", *[f"{design.shards:,}" if design.shards else "" for design in compared])
    drawn.add_row("the burst, at once", *["never" if d.drain_s is None else duration(d.drain_s) for d in compared])
    drawn.add_row("verdict", *[f"[{'green' if d.verdict == 'in time' else 'red'}]{d.verdict}" for d in compared])
    return drawn


def caption(load: Load, polling: Polling) -> str:
    each_per_s = load.peak_per_s / polling.workers
    lines = [f"Workers: {polling.workers:,}. To keep up, each claims {each_per_s:,.0f} a second at the peak."]
    index_units_per_s = load.peak_per_s * KEY_CHANGE_WRITES
    if index_units_per_s > NEW_TABLE_UNITS_PER_S:
        lines.append(f"A new index takes {NEW_TABLE_UNITS_PER_S:,} units a second: warm it to {index_units_per_s:,.0f} first.")
    return "\n".join([*lines, "At most once: open fires and deliveries are not counted. Quotas can be raised."])


def options() -> argparse.ArgumentParser:
    """Omitted options keep their defaults, and are absent from the namespace."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], argument_default=argparse.SUPPRESS)
    add = parser.add_argument
    add("--schedules", required=True)
    add("--fires-per-hour", required=True, help="of all schedules together")
    add("--burst", required=True, help="how many of an hour's fires fall together")
    add("--burst-minutes", help="into how long a window; default 1")
    add("--payload-bytes", help="of one schedule; default 300")
    add("--workers", help="default 1")
    add("--ticks-per-minute", help="how often a worker looks; default 60")
    add("--price-write", dest="write", metavar="DOLLARS", help="a million write units; default 0.625")
    add("--price-read", dest="read", metavar="DOLLARS", help="a million read units; default 0.125")
    add("--price-storage", dest="storage", metavar="DOLLARS", help="a gigabyte for a month; default 0.25")
    add("--price-scheduler", dest="scheduler", metavar="DOLLARS", help="a million scheduler invocations; default 1.00")
    add("--free-invocations", help="of the scheduler, a month; default 14000000")
    add("--svg", type=Path, default=None, metavar="FILE", help="draw dollars against schedules")
    add("--json", action="store_true", default=False, help="print JSON for machines")
    return parser


def main() -> int:
    parser = options()
    given = parser.parse_args()
    try:
        load = msgspec.convert(vars(given), Load, strict=False)
        polling = msgspec.convert(vars(given), Polling, strict=False)
        prices = msgspec.convert(vars(given), Prices, strict=False)
    except msgspec.ValidationError as error:
        parser.error(str(error))
    compared = designs(load, polling, prices)
    if given.svg:
        given.svg.write_text(draw(chart(load, polling, prices)), encoding="utf-8")
    if given.json:
        columns = [{**msgspec.to_builtins(design), "total": design.total} for design in compared]
        answer = msgspec.json.encode({"load": load, "polling": polling, "prices": prices, "designs": columns})
        sys.stdout.write(msgspec.json.format(answer).decode() + "\n")
    else:
        Console().print(table(load, polling, compared))
    return 0


if __name__ == "__main__":
    sys.exit(main())
