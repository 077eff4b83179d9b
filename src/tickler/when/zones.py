"""Conversion between instants and wall times of a zone, as integer arithmetic.

A zone is a sequence of spans, each with one offset from UTC. Two functions are defined everywhere, also in gaps, in folds and on
days that a zone skipped:

- `highest_wall(at)`: the highest wall time that the clock has shown up to an instant;
- `first_at(wall)`: the first instant at which the clock has reached a wall time.

A wall time inside a gap is reached at the first instant after the gap. One inside a fold is reached the first time, and while the
clock shows it again, `highest_wall` does not change. Wall times and instants are whole seconds since the epoch.
"""

from __future__ import annotations

import difflib
import errno
import os
import zoneinfo
from bisect import bisect_left, bisect_right
from datetime import datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from tickler.errors import StoreUnavailable, UnknownTimezone

DAY = 86_400
MAX_NAME_LENGTH = 100

_NOT_A_PLACE = frozenset({"localtime", "posixrules"})
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # says nothing about the zone
_EXAMPLE = "use an IANA name such as 'Europe/Paris'"

# Spans are computed on demand, in windows of 2**25 seconds (388 days). The zone is probed every three days: no zone has ever
# changed its offset and back in less (Freetown in 1939 came nearest, with four days).
_WINDOW_BITS = 25
_STEP = 3 * DAY
_MAX_WINDOWS = 512
_MARGIN = 3 * DAY  # around a window; more than any offset or gap, so that results near its edges are right
_FIRST_SECOND, _LAST_SECOND = -62_000_000_000, 253_370_000_000  # within datetime's years 1 to 9999
_NEVER, _ALWAYS = -(1 << 62), 1 << 62


class _Window(NamedTuple):
    starts: list[int]  # first instant of each span; ascending
    offsets: list[int]  # seconds east of UTC in each span
    before: list[int]  # highest wall time before each span
    reached: list[int]  # highest wall time by the end of each span; ascending


class Span(NamedTuple):
    """Instants `start <= at < end` with one offset, cut at the bounds of a window."""

    start: int
    end: int
    offset: int


class Zone:
    """One zone of this machine's time zone database."""

    __slots__ = ("_windows", "info")

    def __init__(self, info: zoneinfo.ZoneInfo) -> None:
        self.info = info
        self._windows: dict[int, _Window] = {}

    def highest_wall(self, at: int) -> int:
        window = self._window(at)
        i = bisect_right(window.starts, at) - 1
        wall = at + window.offsets[i]
        earlier = window.before[i]
        return wall if wall > earlier else earlier

    def first_at(self, wall: int) -> int | None:
        """Return the first instant at which the clock has reached `wall`; None on a date that the zone skipped."""
        window = self._window(wall)
        i = bisect_left(window.reached, wall)
        start, offset = window.starts[i], window.offsets[i]
        at = wall - offset
        if at >= start:
            return at
        midnight = wall - wall % DAY
        skipped_the_date = window.before[i] < midnight and start + offset >= midnight + DAY
        return None if skipped_the_date else start

    def span(self, at: int) -> Span:
        window = self._window(at)
        i = bisect_right(window.starts, at) - 1
        low = (at >> _WINDOW_BITS) << _WINDOW_BITS
        high = low + (1 << _WINDOW_BITS)
        following = window.starts[i + 1] if i + 1 < len(window.starts) else high
        return Span(max(window.starts[i], low), min(following, high), window.offsets[i])

    def _window(self, at: int) -> _Window:
        number = at >> _WINDOW_BITS
        window = self._windows.get(number)
        if window is None:
            if len(self._windows) >= _MAX_WINDOWS:
                self._windows.clear()
            window = self._windows[number] = self._find_spans(number << _WINDOW_BITS)
        return window

    def _find_spans(self, low: int) -> _Window:
        at = low - _MARGIN
        end = low + (1 << _WINDOW_BITS) + _MARGIN
        starts, offsets = [_NEVER], [self._offset(at)]
        while at < end:
            following = at + _STEP
            if self._offset(following) != offsets[-1]:
                following = self._next_change(at, following)
                starts.append(following)
                offsets.append(self._offset(following))
            at = following
        before, reached = [], []
        highest = _NEVER
        for offset, next_start in zip(offsets, [*starts[1:], _ALWAYS], strict=True):
            before.append(highest)
            highest = max(highest, next_start - 1 + offset)
            reached.append(highest)
        return _Window(starts, offsets, before, reached)

    def _next_change(self, at: int, changed: int) -> int:
        """Return the first second in `at < s <= changed` whose offset differs from that of `at`."""
        same, offset = at, self._offset(at)
        while changed - same > 1:
            middle = (same + changed) // 2
            if self._offset(middle) == offset:
                same = middle
            else:
                changed = middle
        return changed

    def _offset(self, at: int) -> int:
        clamped = min(max(at, _FIRST_SECOND), _LAST_SECOND)
        offset = datetime.fromtimestamp(clamped, self.info).utcoffset()
        assert offset is not None
        return offset.days * DAY + offset.seconds


def load_zone(name: str, *, suggest: bool = True) -> Zone:
    """Return the shared zone of that name. With `suggest`, `UnknownTimezone` suggests a similar name."""
    if not isinstance(name, str):
        raise UnknownTimezone(str(name)[:40], f"a zone is a name such as 'Europe/Paris', not a {type(name).__name__}")
    if len(name) > MAX_NAME_LENGTH:
        raise UnknownTimezone(name[:40] + "…", f"a name has at most {MAX_NAME_LENGTH} characters: {_EXAMPLE}")
    if name in _NOT_A_PLACE or name.startswith("right/"):
        raise UnknownTimezone(name, "it is not the same on every machine: name the zone, such as 'Europe/Paris'")
    try:
        return _load_zone(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            reason = os.strerror(error.errno).lower()
            raise StoreUnavailable(f"the time zone {name} cannot be read: {reason}: raise the limit, or try again") from error
        raise UnknownTimezone(name, _unknown(name, zoneinfo.TZPATH) if suggest else _not_here(zoneinfo.TZPATH)) from None


@lru_cache(maxsize=1024)
def _load_zone(name: str) -> Zone:
    return Zone(zoneinfo.ZoneInfo(name))


@lru_cache(maxsize=256)
def _unknown(name: str, path: tuple[str, ...]) -> str:
    known = _known_zones(path)
    return _not_here(path, _suggestion(name, known)) if known else _not_here(path)


@lru_cache(maxsize=1)
def _known_zones(path: tuple[str, ...]) -> frozenset[str]:
    """Return the names of the zones in `path`. Listing them takes milliseconds."""
    return frozenset(zoneinfo.available_timezones() - _NOT_A_PLACE)


@lru_cache(maxsize=64)
def _not_here(path: tuple[str, ...], hint: str = _EXAMPLE) -> str:
    if not _known_zones(path):
        return "this machine has no time zone database: install the tzdata package"
    return f"{hint} (time zone database {tzdata_version()})"


def _suggestion(name: str, known: frozenset[str]) -> str:
    """Suggest a similar name, or the place of that name. Abbreviations are ambiguous, so they get no suggestion."""
    by_lower = {zone.lower(): zone for zone in known} | {"z": "UTC"}
    if name.lower() in by_lower:
        return f"did you mean {by_lower[name.lower()]!r}?"
    if len(name) < 5 or not name.strip("+-:0123456789UTCGM"):
        return "abbreviations and offsets are not zones: use a place such as 'Europe/Paris', or 'UTC'"
    by_place = {zone.lower().rpartition("/")[2]: zone for zone in sorted(known, reverse=True) if "/" in zone}
    wanted = name.lower().replace(" ", "_")
    near = difflib.get_close_matches(wanted, by_lower, n=1)
    found = by_place.get(wanted) or (by_lower[near[0]] if near else None)
    return f"did you mean {found!r}?" if found else _EXAMPLE


def tzdata_version() -> str:
    """Return the release of the time zone database that `zoneinfo` reads here, such as '2025b'."""
    for folder in zoneinfo.TZPATH:
        if Path(folder, "UTC").is_file():
            return _version_of_folder(Path(folder))
    try:
        release = metadata.version("tzdata")  # the wheel of 2025b is 2025.2
    except metadata.PackageNotFoundError:
        return "none"
    year, _, number = release.partition(".")
    return year + chr(ord("a") + int(number.split(".")[0]) - 1)


def _version_of_folder(folder: Path) -> str:
    compact = folder / "tzdata.zi"
    if compact.is_file():
        with compact.open(encoding="utf-8") as lines:
            first = lines.readline()
        if first.startswith("# version "):
            return first.removeprefix("# version ").strip()
    version = folder / "+VERSION"
    return version.read_text(encoding="utf-8").strip() if version.is_file() else f"unknown ({folder})"
