"""Many schedules at once, a line of JSON each: in by batches, out by pages, whatever carries the bytes."""

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
BATCH = 1_000  # lines that are written together
MAX_BATCH_BYTES = 2_000_000
MAX_BATCH_WHENS = 200  # expressions among them: the next fire of each is worked out within one write
PAGE = 200  # schedules that are read together: each may have a payload of 256 KB

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a line, counted from 1: it was put, or refused with an `error`. Owner and key as far as they are known."""

    line: int
    owner: str | None = None
    key: str | None = None
    error: str | None = None


class _Entry(NamedTuple):
    """A line that was read: `schedule` is None where it was refused."""

    result: LineResult
    schedule: Schedule | None


class _Reading(NamedTuple):
    """How lines are read: what may be put, how the loop is shared, and where long lines are read."""

    check: Callable[[Schedule], None]
    pace: Pace
    aside: RunInThread


def _anything(schedule: Schedule) -> None:
    """Every schedule may be put."""


async def import_lines(
    schedules: Schedules,
    pieces: AsyncIterable[bytes],
    *,
    check: Callable[[Schedule], None] = _anything,
    all_or_none: bool = False,
    pace: Pace | None = None,
    aside: RunInThread = in_place,
) -> AsyncIterator[LineResult]:
    """Put a schedule a line, as `encode_schedule` writes them; a result a line, in order, as batches are written.

    The pieces may be of any size, and end anywhere. A line that is refused does not stop the others; blank ones are passed over.
    Where owner and key come again, the later line counts. `check` raises what forbids a schedule. With `all_or_none` all lines
    are held in memory and put at once, or none is: only those that are refused have a result then. Imports with the same `pace`
    take turns; `aside` reads long lines.
    """
    pace = pace or Pace()
    entries = _entries(pieces, _Reading(check, pace, aside))
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


def _refuse_to_lose(schedule: StoredSchedule) -> None:
    reason = "was written by a newer Tickler: upgrade" if schedule.newer else f"does not read ({schedule.reason}): put it again"
    raise InvalidSchedule("schedule", f"{schedule.id} {reason}, then export")


async def export_lines(
    schedules: Schedules, owner: str | None = None, *, left_out: Callable[[StoredSchedule], None] = _refuse_to_lose
) -> AsyncIterator[bytes]:
    """Every schedule a line, of one owner or all, by owner and key, in pieces of whole lines: what `import_lines` takes.

    `left_out` is told of each that could not be written down whole, and may raise.
    """
    after: str | None = None
    while True:
        page = await schedules.list(owner=owner, limit=PAGE, after=after)
        for schedule in page.items:
            if _is_torn(schedule):
                left_out(schedule)
        piece = b"".join(_line(schedule) for schedule in page.items if not _is_torn(schedule))
        if piece:
            yield piece
        if page.next is None:
            return
        after = page.next


def _is_torn(schedule: StoredSchedule) -> bool:
    return schedule.newer or schedule.state == "unreadable"


def _line(schedule: StoredSchedule) -> bytes:
    return encode_schedule(schedule) + b"\n"


# Reading.


async def _entries(pieces: AsyncIterable[bytes], reading: _Reading) -> AsyncIterator[tuple[_Entry, int]]:
    """Each line, read, and its size."""
    turns = reading.pace.turns()
    number = 0
    async for line in _lines(pieces):
        number += 1
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        await turns.next()
        if not line.isspace() and line:
            read = partial(_read, number, line, reading.check)
            yield await reading.aside(read) if len(line) > LONG_BYTES else read(), len(line)


async def _lines(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Without their ends. What is longer than a line may be is cut right after that, so that it can be refused."""
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
        reason = f"is longer than {MAX_LINE_LENGTH} bytes: put less into the payload, and a reference to the rest"
        return _Entry(LineResult(line=number, error=reason), None)
    fields: object = None
    try:
        fields = read_schedule_json(line)
        schedule = schedule_from_json(fields, suggest=False)
        check(schedule)
    except TicklerError as error:
        return _Entry(_refused(number, fields, str(error)), None)
    except RecursionError:
        return _Entry(_refused(number, fields, "is nested too deep: flatten it"), None)
    return _Entry(LineResult(line=number, owner=schedule.owner, key=schedule.key), schedule)


def _refused(number: int, fields: object, reason: str) -> LineResult:
    found = fields if isinstance(fields, dict) else {}
    names = (found.get("owner"), found.get("key"))
    owner, key = (name if isinstance(name, str) and len(name) <= MAX_NAME_BYTES else None for name in names)
    return LineResult(line=number, owner=owner, key=key, error=reason)


# Writing.


async def _put(schedules: Schedules, batch: Sequence[_Entry], pace: Pace) -> AsyncIterator[LineResult]:
    """All of a batch but those that are refused, in as few writes as that takes; results in order, as they are written.

    What stands before the first that is refused is put without it; how many are tried together follows from how often that
    happens.
    """
    untold = deque(entry.result for entry in batch)
    refused: dict[int, str] = {}
    waiting = [(entry.result.line, entry.schedule) for entry in batch if entry.schedule is not None]
    together = BATCH
    while waiting:
        some, waiting = waiting[:together], waiting[together:]
        try:
            async with pace.writing:
                await schedules.put_many(schedule for _, schedule in some)
        except InvalidInput as error:
            place = _place(error, len(some))
            if place is not None:
                refused[some.pop(place)[0]] = _reason(error)
            waiting = some + waiting
            together = place or max(len(some) // 2, 1)
            continue
        together = min(2 * together, BATCH)
        while some and untold and untold[0].line <= some[-1][0]:
            result = untold.popleft()
            yield _with_reason(result, refused.get(result.line))
    for result in untold:
        yield _with_reason(result, refused.get(result.line))


async def _put_all_or_none(schedules: Schedules, entries: Sequence[_Entry]) -> list[LineResult]:
    """What was refused; or all of them, if nothing was."""
    read = [entry for entry in _distinct(entries) if entry.schedule is not None]
    refused = [entry.result for entry in _distinct(entries) if entry.schedule is None]
    if refused:
        return refused
    try:
        await schedules.put_many(entry.schedule for entry in read if entry.schedule is not None)
    except InvalidInput as error:
        place = _place(error, len(read))
        if place is None:
            raise
        return [_with_reason(read[place].result, _reason(error))]
    return [entry.result for entry in read]


def _distinct(entries: Iterable[_Entry]) -> list[_Entry]:
    """With those refused whose owner and key came before."""
    first: dict[Id, int] = {}
    distinct: list[_Entry] = []
    for entry in entries:
        if entry.schedule is None:
            distinct.append(entry)
            continue
        line = first.setdefault(entry.schedule.id, entry.result.line)
        reason = None if line == entry.result.line else f"{entry.schedule.id} is also on line {line}: leave one of them out"
        distinct.append(entry if reason is None else _Entry(_with_reason(entry.result, reason), None))
    return distinct


def _place(error: InvalidInput, number: int) -> int | None:
    """Which of so many was refused; None when nobody knows."""
    position: int | None = getattr(error, "position", None)
    return 0 if position is None and number == 1 else position


def _reason(error: InvalidInput) -> str:
    return str(error).removeprefix(f"schedule {getattr(error, 'position', None)}: ")


def _with_reason(result: LineResult, reason: str | None) -> LineResult:
    return result if reason is None else msgspec.structs.replace(result, error=reason)
