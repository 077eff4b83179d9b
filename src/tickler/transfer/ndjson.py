"""Imports and exports schedules as lines of JSON, over any stream of bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from tickler.database.pacing import LONG_BYTES, Pace, RunInThread, in_place
from tickler.errors import InvalidInput, InvalidSchedule, TicklerError
from tickler.model.schedule import MAX_NAME_BYTES, Id, Schedule, StoredSchedule
from tickler.model.schedule_json import encode_schedule, read_schedule_json, schedule_from_json
from tickler.schedules.schedules import Schedules
from tickler.when import When

MAX_LINE_LENGTH = 1_000_000
BATCH = 1_000  # lines per write
MAX_BATCH_BYTES = 2_000_000
MAX_BATCH_WHENS = 200  # expressions per write: the next fire of each is computed inside it
PAGE = 200  # schedules per read, each with a payload of up to 256 KB

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one line, counted from 1: put, or refused with an `error`. Owner and key are set if they are known."""

    line: int
    owner: str | None = None
    key: str | None = None
    error: str | None = None


class _Entry(NamedTuple):
    """A parsed line. `schedule` is None if the line was refused."""

    result: LineResult
    schedule: Schedule | None


class _ReadOptions(NamedTuple):
    """`check` refuses schedules, `pace` shares the event loop, `run_long` parses long lines."""

    check: Callable[[Schedule], None]
    pace: Pace
    run_long: RunInThread


def _allow_all(schedule: Schedule) -> None:
    """Refuse no schedule."""


async def import_lines(
    schedules: Schedules,
    pieces: AsyncIterable[bytes],
    *,
    check: Callable[[Schedule], None] = _allow_all,
    all_or_none: bool = False,
    pace: Pace | None = None,
    aside: RunInThread = in_place,
) -> AsyncIterator[LineResult]:
    """Put one schedule per line, in the format of `encode_schedule`. Yield one result per line, in order, as batches are written.

    Pieces may have any size and end anywhere. A refused line does not stop the others; blank lines are skipped. If owner and key
    are repeated, the last line counts. `check` raises an error to refuse a schedule. With `all_or_none` all lines are held in
    memory and put in one write or not at all; if any line is refused, only refused lines have a result. Imports with the same
    `pace` take turns; `aside` parses long lines.
    """
    pace = pace or Pace()
    entries = _entries(pieces, _ReadOptions(check, pace, aside))
    if all_or_none:
        for result in await _put_all_or_none(schedules, [entry async for entry, _ in entries]):
            yield result
        return
    batch: list[_Entry] = []
    ids: set[Id] = set()
    whens: set[When] = set()
    held = 0
    async for entry, size in entries:
        schedule = entry.schedule
        is_full = len(batch) >= BATCH or len(whens) >= MAX_BATCH_WHENS or held + size > MAX_BATCH_BYTES
        if is_full or (schedule is not None and schedule.id in ids):
            async for result in _put(schedules, batch, pace):
                yield result
            batch, ids, whens, held = [], set(), set(), 0
        batch.append(entry)
        held += size
        if schedule is not None:
            ids.add(schedule.id)
            whens.add(schedule.when)
    async for result in _put(schedules, batch, pace):
        yield result


def _refuse_incomplete_export(schedule: StoredSchedule) -> None:
    reason = "was written by a newer Tickler: upgrade" if schedule.newer else f"cannot be read ({schedule.reason}): put it again"
    raise InvalidSchedule("schedule", f"{schedule.id} {reason}, then export")


async def export_lines(
    schedules: Schedules, owner: str | None = None, *, left_out: Callable[[StoredSchedule], None] = _refuse_incomplete_export
) -> AsyncIterator[bytes]:
    """Yield schedules of one owner or all as lines for `import_lines`, by owner and key, in pieces of whole lines.

    `left_out` is called with each schedule that cannot be exported completely, and may raise.
    """
    after: str | None = None
    while True:
        page = await schedules.list(owner=owner, limit=PAGE, after=after)
        lines: list[bytes] = []
        for schedule in page.items:
            if schedule.newer or schedule.state == "unreadable":
                left_out(schedule)
            else:
                lines.append(encode_schedule(schedule) + b"\n")
        if lines:
            yield b"".join(lines)
        if page.next is None:
            return
        after = page.next


# Reading.


async def _entries(pieces: AsyncIterable[bytes], options: _ReadOptions) -> AsyncIterator[tuple[_Entry, int]]:
    """Yield each parsed line and its size."""
    turns = options.pace.turns()
    number = 0
    async for line in _lines(pieces):
        number += 1
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        await turns.next()
        if not line.isspace() and line:
            read = partial(_read, number, line, options.check)
            yield await options.run_long(read) if len(line) > LONG_BYTES else read(), len(line)


async def _lines(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield lines without their ends. A line that is too long is cut just above the limit, so that it is refused."""
    held = bytearray()
    async for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for line in whole:
            _hold(held, line)
            yield bytes(held)
            held.clear()
        _hold(held, rest)
    if held:
        yield bytes(held)


def _hold(held: bytearray, more: bytes) -> None:
    held += more[: max(MAX_LINE_LENGTH + 1 - len(held), 0)]


def _read(number: int, line: bytes, check: Callable[[Schedule], None]) -> _Entry:
    if len(line) > MAX_LINE_LENGTH:
        reason = f"is longer than {MAX_LINE_LENGTH} bytes: shorten the payload, and put the rest elsewhere"
        return _Entry(LineResult(line=number, error=reason), None)
    fields: object = None
    try:
        fields = read_schedule_json(line)
        schedule = schedule_from_json(fields, suggest=False)
        check(schedule)
    except TicklerError as error:
        return _Entry(_refused(number, fields, str(error)), None)
    except RecursionError:
        return _Entry(_refused(number, fields, "is nested too deeply: flatten it"), None)
    return _Entry(LineResult(line=number, owner=schedule.owner, key=schedule.key), schedule)


def _refused(number: int, fields: object, reason: str) -> LineResult:
    found = fields if isinstance(fields, dict) else {}
    names = (found.get("owner"), found.get("key"))
    owner, key = (name if isinstance(name, str) and len(name) <= MAX_NAME_BYTES else None for name in names)
    return LineResult(line=number, owner=owner, key=key, error=reason)


# Writing.


async def _put(schedules: Schedules, batch: Sequence[_Entry], pace: Pace) -> AsyncIterator[LineResult]:
    """Put a batch without its refused lines, in few writes. Yield results in order, as they are written.

    After a refusal, the lines before it are put without it; the size of the next write adapts to the rate of refusals.
    """
    unreported = deque(entry.result for entry in batch)
    refused: dict[int, str] = {}
    waiting = [(entry.result.line, entry.schedule) for entry in batch if entry.schedule is not None]
    size = BATCH
    while waiting:
        group, waiting = waiting[:size], waiting[size:]
        try:
            async with pace.writing:
                await schedules.put_many(schedule for _, schedule in group)
        except InvalidInput as error:
            place = _place(error, len(group))
            if place is not None:
                refused[group.pop(place)[0]] = _reason(error)
            waiting = group + waiting
            size = place or max(len(group) // 2, 1)
            continue
        size = min(2 * size, BATCH)
        while group and unreported and unreported[0].line <= group[-1][0]:
            result = unreported.popleft()
            yield _with_reason(result, refused.get(result.line))
    for result in unreported:
        yield _with_reason(result, refused.get(result.line))


async def _put_all_or_none(schedules: Schedules, entries: Sequence[_Entry]) -> list[LineResult]:
    """Return the results of refused lines, or of all lines if none was refused."""
    distinct = _distinct(entries)
    refused = [entry.result for entry in distinct if entry.schedule is None]
    if refused:
        return refused
    try:
        await schedules.put_many(entry.schedule for entry in distinct if entry.schedule is not None)
    except InvalidInput as error:
        place = _place(error, len(distinct))
        if place is None:
            raise
        return [_with_reason(distinct[place].result, _reason(error))]
    return [entry.result for entry in distinct]


def _distinct(entries: Iterable[_Entry]) -> list[_Entry]:
    """Refuse lines that repeat an earlier owner and key."""
    first: dict[Id, int] = {}
    distinct: list[_Entry] = []
    for entry in entries:
        if entry.schedule is None:
            distinct.append(entry)
            continue
        line = first.setdefault(entry.schedule.id, entry.result.line)
        reason = None if line == entry.result.line else f"{entry.schedule.id} is also on line {line}: leave one out"
        distinct.append(entry if reason is None else _Entry(_with_reason(entry.result, reason), None))
    return distinct


def _place(error: InvalidInput, number: int) -> int | None:
    """Return the position of the refused schedule; None if it is unknown."""
    position: int | None = getattr(error, "position", None)
    return 0 if position is None and number == 1 else position


def _reason(error: InvalidInput) -> str:
    return str(error).removeprefix(f"schedule {getattr(error, 'position', None)}: ")


def _with_reason(result: LineResult, reason: str | None) -> LineResult:
    return result if reason is None else msgspec.structs.replace(result, error=reason)
