"""Which of a worker's leases are to be extended: as few as is safe, since each extension is a write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tickler.fires import Fire

SLACK_MS = 1_000
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
            if end - now_ms <= self._left_ms:
                found.append((end, fire.id, fire))
            elif end - now_ms > self._whole_ms + SLACK_MS:
                too_long.append((end, fire.id, fire))
        self._ends, self._lost = ends, lost
        self._looks_too_long = self._looks_too_long + 1 if too_long else 0
        if self._looks_too_long >= LOOKS_BEFORE_SHORTENING:
            found += too_long
        found.sort(key=_end_and_id)
        return [fire for _, _, fire in found]

    def until(self, now_ms: int) -> int:
        """Until when a lease lasts that is extended now."""
        return now_ms + self._whole_ms

    def extended(self, fires: Sequence[Fire], until_ms: int, lost: Collection[Fire]) -> None:
        """The store has extended these, but for those that are another's: they are not tried again."""
        for fire in fires:
            self._ends[_name(fire)] = until_ms
        for fire in lost:
            self._lost.add(_name(fire))


def _name(fire: Fire) -> Name:
    return fire.id, fire.attempt, fire.lease_token


def _end_and_id(found: tuple[int, str, Fire]) -> tuple[int, str]:
    return found[:2]
