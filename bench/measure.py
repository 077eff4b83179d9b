"""Measures interleaved pairs and the median of their ratios: single pairs vary by a factor of two on a shared machine."""

from __future__ import annotations

import atexit
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

PAIRS = 9
SHARED_FOLDER = "BENCH_FOLDER"


class Skipped(Exception):  # nothing went wrong
    """A benchmark cannot run here. The message says what it lacks."""


class Result(NamedTuple):
    """One line of the table. `ratio` is ours to theirs, in the sense that `target` bounds."""

    name: str
    ours: str
    theirs: str
    beside: str
    ratio: float
    target: float
    at_most: bool = False  # the ratio must not exceed the target; otherwise it must reach it

    @property
    def holds(self) -> bool:
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target


async def pairs(
    ours: Callable[[], Awaitable[float]], theirs: Callable[[], Awaitable[float]], number: int = PAIRS
) -> tuple[float, float, float]:
    """Return the median seconds of both, and the median of the ratios theirs/ours: above 1, ours is faster.

    Each callable runs once and returns the seconds that count. The order alternates.
    """
    mine, others, ratios = [], [], []
    for n in range(number):
        if n % 2:
            b, a = await theirs(), await ours()
        else:
            a, b = await ours(), await theirs()
        mine.append(a)
        others.append(b)
        ratios.append(b / a)
    return statistics.median(mine), statistics.median(others), statistics.median(ratios)


def shared_folder() -> Path:
    """Return the folder that all benchmarks of a run share, for data that takes long to make.

    It is removed at the end of the run. The environment variable BENCH_FOLDER names one that is kept.
    """
    if SHARED_FOLDER not in os.environ:
        os.environ[SHARED_FOLDER] = folder = tempfile.mkdtemp(prefix="bench-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(os.environ[SHARED_FOLDER])


class Stopwatch:
    def __enter__(self) -> Stopwatch:
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exc: object) -> None:
        self.seconds = time.perf_counter() - self._start
