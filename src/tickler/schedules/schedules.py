"""Schedules as callers use them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, get_args

import msgspec
from msgspec.structs import replace

from tickler.clock import Clock
from tickler.database.pacing import RunInThread
from tickler.database.unit_of_work import after_commit
from tickler.errors import InvalidInput, InvalidSchedule, NeverFires, ScheduleNotFound
from tickler.model.cursor import decode_schedule, encode_schedule
from tickler.model.fire import HISTORY_RETENTION_MS
from tickler.model.revision import Expected, check_expected, check_version
from tickler.model.schedule import Id, Schedule, State, StoredSchedule, check_name, checked_id
from tickler.model.target import HttpTarget
from tickler.schedules import write as changes
from tickler.schedules.contract import Decide, ScheduleStore, Stored
from tickler.schedules.merge_patch import patched
from tickler.schedules.payload_patch import PayloadMerge, encoded_patch
from tickler.schedules.removed_fields import removed_fields
from tickler.schedules.write import ScheduleChange, ScheduleRemoval
from tickler.webhooks.encryption import Encryption

MAX_LISTED = 1_000


class Page(msgspec.Struct, frozen=True):
    """A page of schedules, and the cursor of the next page; None at the end."""

    items: list[StoredSchedule]
    next: str | None


class Declared(msgspec.Struct, frozen=True):
    """The keys of an owner's schedules, by what `declare` did to them."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    kept: list[str]


class Written(NamedTuple):
    """A schedule as it is stored now, and as it was before, None if there was none."""

    schedule: StoredSchedule
    before: StoredSchedule | None

    @property
    def is_new(self) -> bool:
        return self.before is None

    @property
    def is_changed(self) -> bool:
        """False if the same schedule was stored already, so that nothing was written."""
        return self.schedule is not self.before

    @property
    def removed(self) -> list[str]:
        """Return fields that the write removed, such as "target" or "policy.attempts"; "paused" if it resumed."""
        return [] if self.before is None else removed_fields(self.before, self.schedule)


def _anything(schedule: Schedule) -> None:
    """Allow every schedule."""


class Schedules:
    """Checks arguments and decides what to change; the store applies it.

    Every write takes `using=`: a connection of yours with an open transaction, or a transaction of a table. The write joins it.
    """

    def __init__(
        self,
        store: ScheduleStore,
        clock: Clock,
        *,
        encryption: Encryption | None = None,
        retention_ms: int = HISTORY_RETENTION_MS,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._encryption = encryption or Encryption()
        self._retention_ms = retention_ms  # how long the history keeps what was cancelled
        self._wake = wake  # called after each change: something may have become due

    async def put(self, schedule: Schedule, *, using: object = None) -> StoredSchedule:
        """Insert or replace a schedule by owner and key. `NeverFires` if it is enabled and has no future instant."""
        return (await self.write(schedule, using=using)).schedule

    async def write(self, schedule: Schedule, *, version: Expected | None = None, using: object = None) -> Written:
        """Put a schedule, or update it with a `version`, and return also what was stored before."""
        declared = _checked(schedule)
        if version is not None:
            check_version(version)
        before: StoredSchedule | None = None

        def decide(current: StoredSchedule | None, now_ms: int) -> ScheduleChange | None:
            nonlocal before
            before = current
            if version is not None:
                check_expected(str(declared.id), version, None if current is None else current.revision)
            return self._put(declared, current, now_ms)

        stored = await self._change_one(declared.id, decide, using)
        return Written(stored, before)

    async def patch(
        self,
        owner: str,
        key: str,
        fields: Mapping[str, object],
        *,
        version: Expected | None = None,
        check: Callable[[Schedule], None] = _anything,
        aside: RunInThread = asyncio.to_thread,
        using: object = None,
    ) -> Written:
        """Change some fields and keep the others, in one step: a JSON merge patch (RFC 7396), where None removes.

        A patch that changes nothing writes nothing: the version stays, and the result is not `is_changed`. `ScheduleNotFound` if
        there is no such schedule. A patch that moves the target to another host has to name the stored headers and secret again,
        or None for them. `check` gets the result and may raise. `aside` runs slow work, such as merging long payloads.
        """
        id = checked_id(owner, key)
        if not isinstance(fields, Mapping):
            raise InvalidSchedule("schedule", f"is a {type(fields).__name__}: give an object with the fields to change")
        encoded = encoded_patch(fields)
        payload = PayloadMerge(encoded)
        before: StoredSchedule | None = None
        is_ready = False

        def decide(current: StoredSchedule, now_ms: int) -> ScheduleChange | None:
            nonlocal before, is_ready
            before, is_ready = current, payload.is_ready(current)
            if not is_ready:
                return None
            declared = patched(current, encoded, payload.payload, self._encryption)
            check(declared)
            return self._put(declared, current, now_ms, reason=current.reason if current.state == "paused" else None)

        while True:  # repeats only if the payload was changed while it was merged
            stored = await self._change_one(id, _existing(id, decide, version), using)
            if is_ready:
                return Written(stored, before)
            await aside(payload.merge)

    async def put_many(self, schedules: Iterable[Schedule], *, using: object = None) -> int:
        """Put all schedules or none. All are checked before the first write, and an error names the position.

        Returns how many were new or differed from what was stored.
        """
        declared = _checked_all(schedules)
        ids = _distinct(declared)
        written = 0

        def decide(stored: Stored) -> list[ScheduleChange]:
            nonlocal written
            made = [change for change in self._puts(declared, ids, stored) if change is not None]
            written = len(made)
            return made

        if declared:
            await self._change(ids, decide, using)
        return written

    async def update(self, schedule: Schedule, *, version: Expected, using: object = None) -> StoredSchedule:
        """Put a schedule if the stored one still has this `version`, or with 0 if there is none. `VersionConflict` otherwise.

        Versions restart at 1 when a schedule is deleted and put again; a `revision` tells such schedules apart. Of several
        revisions, one has to match.
        """
        check_version(version)
        return (await self.write(schedule, version=version, using=using)).schedule

    async def pause(
        self, owner: str, key: str, *, reason: str | None = None, version: Expected | None = None, using: object = None
    ) -> StoredSchedule:
        """Hold new fires; open ones finish. `ScheduleNotFound` if there is no such schedule.

        The `reason` is kept until the schedule is resumed or put again. With a `version`, `VersionConflict` if another is stored.
        """
        pause = partial(changes.pause, reason=reason)
        id = checked_id(owner, key)
        return await self._change_one(id, _existing(id, pause, version), using)

    async def resume(self, owner: str, key: str, *, version: Expected | None = None, using: object = None) -> StoredSchedule:
        """Fire again from now on; instants during the pause were not missed. No effect if the schedule is not paused.

        `NeverFires` if it has no future instant. With a `version`, `VersionConflict` if another is stored.
        """
        id = checked_id(owner, key)
        return await self._change_one(id, _existing(id, changes.resume, version), using)

    async def delete(self, owner: str, key: str, *, version: Expected | None = None, using: object = None) -> bool:
        """Delete a schedule and return whether there was one. With a `version`, `VersionConflict` if another is stored."""
        found = False
        if version is not None:
            check_version(version)

        def decide(stored: Stored) -> Sequence[ScheduleRemoval]:
            nonlocal found
            found = bool(stored)
            if version is not None:
                for each in stored.values():
                    check_expected(str(each.id), version, each.revision)
            return self._removals(stored)

        await self._change([checked_id(owner, key)], decide, using)
        return found

    async def pause_all(self, owner: str, *, using: object = None) -> int:
        """Pause every schedule of the owner and return how many were not paused before."""

        def decide(stored: Stored) -> list[ScheduleChange]:
            now_ms = self._clock.now_ms()
            return [change for each in stored.values() if (change := changes.pause(each, now_ms))]

        return await self._change_counted(owner, decide, using)

    async def delete_all(self, owner: str, *, using: object = None) -> int:
        """Delete every schedule of the owner; how many there were."""
        return await self._change_counted(owner, self._removals, using)

    async def declare(self, owner: str, schedules: Iterable[Schedule], *, using: object = None) -> Declared:
        """Make the owner's schedules exactly these: for static schedules that code declares at every start.

        Unchanged schedules are not written. One whose last instant has passed is kept as finished instead of refused, since the
        code that declares it stays the same.
        """
        check_name("owner", owner)
        declared = _checked_all(schedules)
        ids = _distinct(declared)
        for position, id in enumerate(ids):
            if id.owner != owner:
                raise InvalidSchedule("owner", f"{id.owner!r} is not {owner!r}, whose schedules are declared here", position)
        wanted = set(ids)
        report = Declared([], [], [], [])

        def decide(stored: Stored) -> list[ScheduleChange | ScheduleRemoval]:
            nonlocal report
            puts = list(self._puts(declared, ids, stored, finished_is_fine=True))
            gone = [id for id in stored if id not in wanted]
            report = Declared(
                added=[id.key for id in ids if id not in stored],
                changed=[id.key for id, change in zip(ids, puts, strict=True) if change and id in stored],
                removed=[id.key for id in gone],
                kept=[id.key for id, change in zip(ids, puts, strict=True) if change is None],
            )
            return [*(change for change in puts if change), *self._removals(gone)]

        await self._change_owner(owner, decide, using)
        return report

    async def get(self, owner: str, key: str, *, using: object = None) -> StoredSchedule | None:
        """Return a schedule. With `using`, a connection of yours, as your open transaction sees it."""
        return await self._store.get(checked_id(owner, key), using=using)

    async def list(
        self,
        *,
        owner: str | None = None,
        key_prefix: str | None = None,
        state: State | None = None,
        failing: bool = False,
        limit: int = 100,
        after: str | None = None,
    ) -> Page:
        """Return a page of schedules by owner and key, of one owner or all, in one state or any. `after` is a page's `next`.

        With `key_prefix`, only keys of the owner that begin with it; with `failing`, only schedules with a dead fire.
        """
        if owner is not None:
            check_name("owner", owner)
        if state is not None and state not in get_args(State):
            raise InvalidInput(f"state: {state!r} is not one of {', '.join(get_args(State))}")
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LISTED:
            raise InvalidInput(f"limit: {limit!r} is not a page size: pass a whole number from 1 to {MAX_LISTED}")
        start = None if after is None else decode_schedule(after)
        if key_prefix is not None:
            if owner is None:
                raise InvalidInput("key_prefix: needs an owner: pass both")
            with_prefix = self._failing_with_prefix if failing else self._with_prefix
            found: Sequence[StoredSchedule] = await with_prefix(checked_id(owner, key_prefix), state, start, limit + 1)
        else:
            found = await self._store.list(owner=owner, state=state, after=start, limit=limit + 1, failing=failing)
        items = [*found[:limit]]
        return Page(items, encode_schedule(items[-1].id) if len(found) > limit else None)

    async def _with_prefix(self, prefix: Id, state: State | None, after: Id | None, limit: int) -> Sequence[StoredSchedule]:
        """List by prefix. Keys are sorted, so those with the prefix directly follow the prefix itself."""
        found = []
        if after is None and (exact := await self._store.get(prefix)) is not None and state in (None, exact.state):
            found.append(exact)
        start = prefix if after is None or after.key < prefix.key else after
        found += await self._store.list(owner=prefix.owner, state=state, after=start, limit=limit)
        return [each for each in found[:limit] if each.key.startswith(prefix.key)]

    async def _failing_with_prefix(
        self, prefix: Id, state: State | None, after: Id | None, limit: int
    ) -> Sequence[StoredSchedule]:
        """Filter all failing schedules of the owner, which are few."""
        found: list[StoredSchedule] = []
        while len(found) < limit:
            page = await self._store.list(owner=prefix.owner, state=state, after=after, limit=MAX_LISTED, failing=True)
            found += [each for each in page if each.key.startswith(prefix.key)]
            if len(page) < MAX_LISTED:
                break
            after = page[-1].id
        return found[:limit]

    def _put(
        self,
        declared: Schedule,
        current: StoredSchedule | None,
        now_ms: int,
        *,
        finished_is_fine: bool = False,
        reason: str | None = None,
    ) -> ScheduleChange | None:
        """Decide a put. Secrets are encrypted here, not earlier: if the stored target has the same ones, their text is kept."""
        if isinstance(declared.target, HttpTarget):
            before = current.target if current is not None and isinstance(current.target, HttpTarget) else None
            sealed = self._encryption.encrypt_target(declared.target, declared.owner, before)
            declared = declared if sealed is declared.target else replace(declared, target=sealed)
        return changes.put(declared, current, now_ms, finished_is_fine=finished_is_fine, reason=reason)

    def _puts(
        self, declared: Sequence[Schedule], ids: Sequence[Id], stored: Stored, *, finished_is_fine: bool = False
    ) -> Iterator[ScheduleChange | None]:
        now_ms = self._clock.now_ms()
        position = 0
        try:
            for position, schedule in enumerate(declared):
                yield self._put(schedule, stored.get(ids[position]), now_ms, finished_is_fine=finished_is_fine)
        except (InvalidSchedule, NeverFires) as error:
            raise error.at(position) from None

    def _removals(self, ids: Iterable[Id]) -> Sequence[ScheduleRemoval]:
        now_ms = self._clock.now_ms()
        return [ScheduleRemoval(id, now_ms, now_ms + self._retention_ms) for id in ids]

    async def _change(self, ids: Sequence[Id], decide: Decide, using: object) -> None:
        await self._store.change(ids, decide, using=using)
        after_commit(using, self._wake)

    async def _change_owner(self, owner: str, decide: Decide, using: object) -> None:
        await self._store.change_owner(owner, decide, using=using)
        after_commit(using, self._wake)

    async def _change_one(
        self, id: Id, decide_one: Callable[[StoredSchedule | None, int], ScheduleChange | None], using: object
    ) -> StoredSchedule:
        result: StoredSchedule | None = None

        def decide(stored: Stored) -> list[ScheduleChange]:
            nonlocal result
            current = stored.get(id)
            change = decide_one(current, self._clock.now_ms())
            result = current if change is None else change.stored(current)
            return [] if change is None else [change]

        await self._change([id], decide, using)
        assert result is not None
        return result

    async def _change_counted(self, owner: str, decide: Decide, using: object) -> int:
        check_name("owner", owner)
        count = 0

        def counted(stored: Stored) -> Sequence[ScheduleChange | ScheduleRemoval]:
            nonlocal count
            decided = decide(stored)
            count = len(decided)
            return decided

        await self._change_owner(owner, counted, using)
        return count


def _existing(
    id: Id, change: Callable[[StoredSchedule, int], ScheduleChange | None], version: Expected | None
) -> Callable[[StoredSchedule | None, int], ScheduleChange | None]:
    if version is not None:
        check_version(version)

    def decide(current: StoredSchedule | None, now_ms: int) -> ScheduleChange | None:
        if current is None:
            raise ScheduleNotFound(*id)
        if version is not None:
            check_expected(str(id), version, current.revision)
        return change(current, now_ms)

    return decide


def _checked(schedule: object, position: int | None = None) -> Schedule:
    if type(schedule) is Schedule:
        return schedule
    if isinstance(schedule, StoredSchedule):
        return schedule.declared()
    raise InvalidSchedule("schedule", f"is a {type(schedule).__name__}: pass a Schedule", position)


def _checked_all(schedules: Iterable[object]) -> list[Schedule]:
    return [_checked(schedule, position) for position, schedule in enumerate(schedules)]


def _distinct(schedules: Sequence[Schedule]) -> list[Id]:
    ids = [schedule.id for schedule in schedules]
    if len(set(ids)) < len(ids):
        first: dict[Id, int] = {}
        for position, id in enumerate(ids):
            if first.setdefault(id, position) != position:
                raise InvalidSchedule("key", f"{id} is also schedule {first[id]}: leave one of them out", position)
    return ids
