"""The workload of the benchmarks: due rows in a few thousand distinct (expression, zone) pairs."""

from __future__ import annotations

import random

from tickler import Cron, IndexRow, Weekly, When

NOW_MS = 1_794_787_200_000  # 2026-11-16T00:00:00Z

ZONES = [
    "America/New_York", "America/Chicago", "America/Los_Angeles", "America/Sao_Paulo", "Europe/London", "Europe/Paris",
    "Europe/Berlin", "Europe/Athens", "Africa/Lagos", "Africa/Cairo", "Asia/Dubai", "Asia/Kolkata", "Asia/Shanghai",
    "Asia/Tokyo", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland", "UTC",
]  # fmt: skip


def expressions(number: int, seed: int = 1) -> list[When]:
    """Return distinct daily, weekday, weekly, monthly and hourly expressions in many zones."""
    rng = random.Random(seed)
    made: set[When] = set()
    while len(made) < number:
        zone, minute, hour = rng.choice(ZONES), rng.choice([0, 0, 15, 30, rng.randrange(60)]), rng.randrange(24)
        kind = rng.randrange(6)
        if kind == 0:
            made.add(Cron(f"{minute} * * * *", tz=zone))
        elif kind == 1:
            made.add(Cron(f"{minute} {hour} * * 1-5", tz=zone))
        elif kind == 2:
            made.add(Cron(f"{minute} {hour} {rng.randrange(1, 29)} * *", tz=zone))
        elif kind == 3:
            made.add(Weekly({"tue": f"{hour:02}:{minute:02}", "thu": f"{hour:02}:{minute:02}"}, tz=zone))
        else:
            made.add(Cron(f"{minute} {hour} * * *", tz=zone))
    return sorted(made, key=str)


def due_rows(number: int, distinct: int = 3000) -> list[IndexRow]:
    """Return rows that became due within the last hour."""
    rng = random.Random(2)
    whens = expressions(distinct)
    return [
        IndexRow(f"user-{n // 3:07}", f"schedule-{n % 3}", rng.choice(whens), NOW_MS - rng.randrange(3_600_000))
        for n in range(number)
    ]
