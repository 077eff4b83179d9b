"""Run the benchmarks and print the ratios: `python bench/run.py [name …] [--json]`."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from measure import Result, Skipped, shared_folder

BENCHMARKS = [
    "cron",
    "claim",
    "put_many",
    "processes",
    "sleeping",
    "dynamodb",
    "deliveries",
    "peers",
    "punctual",
    "idle",
    "flood",
    "api",
    "tables",
    "streams",
    "slothpost_tick",
    "pricebook_load",
    "pricebook_queries",
    "pricebook_switch",
    "pricebook_dynamodb",
    "pricebook_graphql",
]

PIPED_WIDTH = 200  # a table that is not shown on a terminal is not cut to 80 columns

progress = Console(stderr=True)


def measure(names: list[str]) -> tuple[list[Result], dict[str, str]]:
    """Return the results, and why benchmarks were skipped, by name.

    Each runs in a process of its own: what earlier ones leave on the heap makes the garbage collector slower for later ones.
    """
    results: list[Result] = []
    skipped: dict[str, str] = {}
    shared_folder()  # in the environment of all of them
    for name in names:
        started = time.monotonic()
        try:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                results += process.submit(run_one, name).result()
        except Skipped as why:
            skipped[name] = str(why)
        progress.print(f"[dim]{name}: {time.monotonic() - started:.0f} s")
    return results, skipped


def run_one(name: str) -> list[Result]:
    results: list[Result] = asyncio.run(importlib.import_module(name).run(lambda line: progress.print(f"[dim]{line} …")))
    return results


def table(results: list[Result]) -> Table:
    drawn = Table(caption=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; medians of pairs")
    for heading in ("benchmark", "ours", "beside it", "", "ratio", "must be"):
        drawn.add_column(heading, justify="left" if heading in ("benchmark", "") else "right")
    for result in results:
        bound = f"{'≤' if result.at_most else '≥'} {result.target:g}" if result.target else "shown"
        colour = "green" if result.holds else "red"
        drawn.add_row(result.name, result.ours, result.theirs, result.beside, f"[{colour}]{result.ratio:.2f}", bound)
    return drawn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}: there are {', '.join(BENCHMARKS)}")
    results, skipped = measure(arguments.names or BENCHMARKS)
    if arguments.json:
        sys.stdout.write(json.dumps([{**result._asdict(), "holds": result.holds} for result in results], indent=2) + "\n")
    else:
        terminal = Console()
        (terminal if terminal.is_terminal else Console(width=PIPED_WIDTH)).print(table(results))
    missed = [result.name for result in results if not result.holds]
    progress.print(last_line(len(results), missed, skipped), highlight=False, markup=False, soft_wrap=True)
    return 1 if missed else 0


def last_line(count: int, missed: list[str], skipped: dict[str, str]) -> str:
    """Say which bounds do not hold, and what is not known because it was skipped."""
    held = f"{count - len(missed)} of {count} hold"
    failed = f"; NOT: {'; '.join(missed)}" if missed else ""
    left_out = "".join(f"; SKIPPED {name}: {why}" for name, why in skipped.items())
    return f"{held}{failed}{left_out}"


if __name__ == "__main__":
    sys.exit(main())
