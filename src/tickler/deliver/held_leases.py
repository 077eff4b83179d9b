"""Which of a worker's leases are to be extended: as few as is safe, since each extension is a write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tickler.model.fire import Extension, Fire

SLACK_MS = 1_000
SKIPPED_PAUSE_MS = 200  # before a lease is tried again whose fire was locked
LOOKS_BEFORE_SHORTENING = 4  # so that others have noticed too that the clock was set back, before it is set forward again

Name = tuple[str, int, int | None]  # a fire's id, its attempt and its lease token: what a lease is held by


class HeldLeases:
    """Knows until when each lease lasts that was extended; of the others the fire says so.

    A lease is extended after a third of its time. So what is delivered sooner costs nothing, and two thirds are left for a store
    that is slow or away.
    """

    def __init__(self, lease_ms: int, ahead_ms: int) -> None:
        self._whole_ms = lease_ms + ahead_ms  # what is claimed ahead is not taken over before its instant
        self._left_ms = self._whole_ms - lease_ms // 3
        self._ends: dict[Name, int] = {}
        self._lost: set[Name] = set()
        self._again_at: dict[Name, int] = {}  # those that were skipped
        self._looks_too_long = 0

    def due(self, held: Iterable[Fire], now_ms: int) -> list[Fire]:
        """Those of all that are held that it is time for, the first to end first.

        One that lasts longer than a lease can, since the clock was set back, is due too, if that stays so: to be shortened.
        """
        ends: dict[Name, int] = {}
        lost: set[Name] = set()
        found: list[tuple[int, str, Fire]] = []
        too_long: list[tuple[int, str, Fire]] = []
        for fire in held:
            name = _name(fire)
            if name in self._lost:
                lost.add(name)
                continue
            end = ends[name] = self._ends.get(name) or fire.deliver_after or now_ms
            if 0 < self._again_at.get(name, now_ms) - now_ms <= SKIPPED_PAUSE_MS:  # longer only if the clock was set back
                continue
            if end - now_ms <= self._left_ms:
                found.append((end, fire.id, fire))
            elif end - now_ms > self._whole_ms + SLACK_MS:
                too_long.append((end, fire.id, fire))
        self._ends, self._lost = ends, lost
        self._again_at = {name: at for name, at in self._again_at.items() if name in ends}
        self._looks_too_long = self._looks_too_long + 1 if too_long else 0
        if self._looks_too_long >= LOOKS_BEFORE_SHORTENING:
            found += too_long
        found.sort(key=_end_and_id)
        return [fire for _, _, fire in found]

    def until(self, now_ms: int) -> int:
        """Until when a lease lasts that is extended now."""
        return now_ms + self._whole_ms

    def extended(self, fires: Sequence[Fire], until_ms: int, extension: Extension) -> None:
        """The store has extended these, but for those that are lost, which are not tried again, and those that it skipped."""
        skipped = {_name(fire) for fire in extension.skipped}
        self._lost |= {_name(fire) for fire in extension.lost}
        again_at = until_ms - self._whole_ms + SKIPPED_PAUSE_MS
        for fire in fires:
            if (name := _name(fire)) in skipped:
                self._again_at[name] = again_at
            else:
                self._ends[name] = until_ms


def _name(fire: Fire) -> Name:
    return fire.id, fire.attempt, fire.lease_token


def _end_and_id(found: tuple[int, str, Fire]) -> tuple[int, str]:
    return found[:2]
