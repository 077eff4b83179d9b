"""Decides which leases of a worker to extend: as few as is safe, since each extension is a write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tickler.model.fire import Extension, Fire

SLACK_MS = 1_000
SKIPPED_PAUSE_MS = 200  # before retrying a lease whose fire was locked
LOOKS_BEFORE_SHORTENING = 4  # gives other workers time to notice that the clock was set back

LeaseKey = tuple[str, int, int | None]  # a fire's id, attempt and lease token


class HeldLeases:
    """Remembers when each extended lease ends; for the others, the fire says so.

    A lease is extended after a third of its time. So a fast delivery costs no extension, and two thirds are left for a store that
    is slow or away.
    """

    def __init__(self, lease_ms: int, ahead_ms: int) -> None:
        self._whole_ms = lease_ms + ahead_ms  # a fire claimed ahead is not taken over before its instant
        self._left_ms = self._whole_ms - lease_ms // 3
        self._ends: dict[LeaseKey, int] = {}
        self._lost: set[LeaseKey] = set()
        self._retry_at: dict[LeaseKey, int] = {}  # of those that were skipped
        self._looks_too_long = 0

    def due(self, held: Iterable[Fire], now_ms: int) -> list[Fire]:
        """Return the held fires whose leases have to be extended now, the first to end first.

        If the clock was set back, and stays so, leases that last too long are included, to be shortened.
        """
        ends: dict[LeaseKey, int] = {}
        lost: set[LeaseKey] = set()
        found: list[tuple[int, str, Fire]] = []
        too_long: list[tuple[int, str, Fire]] = []
        for fire in held:
            key = _key(fire)
            if key in self._lost:
                lost.add(key)
                continue
            end = ends[key] = self._ends.get(key) or fire.deliver_after or now_ms
            if 0 < self._retry_at.get(key, now_ms) - now_ms <= SKIPPED_PAUSE_MS:  # longer only if the clock was set back
                continue
            if end - now_ms <= self._left_ms:
                found.append((end, fire.id, fire))
            elif end - now_ms > self._whole_ms + SLACK_MS:
                too_long.append((end, fire.id, fire))
        self._ends, self._lost = ends, lost
        self._retry_at = {key: at for key, at in self._retry_at.items() if key in ends}
        self._looks_too_long = self._looks_too_long + 1 if too_long else 0
        if self._looks_too_long >= LOOKS_BEFORE_SHORTENING:
            found += too_long
        found.sort(key=_end_and_id)
        return [fire for _, _, fire in found]

    def until(self, now_ms: int) -> int:
        """Return when a lease ends that is extended now."""
        return now_ms + self._whole_ms

    def extended(self, fires: Sequence[Fire], until_ms: int, extension: Extension) -> None:
        """Note that the store extended these: lost leases are not tried again, skipped ones soon."""
        skipped = {_key(fire) for fire in extension.skipped}
        self._lost |= {_key(fire) for fire in extension.lost}
        retry_at = until_ms - self._whole_ms + SKIPPED_PAUSE_MS
        for fire in fires:
            if (key := _key(fire)) in skipped:
                self._retry_at[key] = retry_at
            else:
                self._ends[key] = until_ms


def _key(fire: Fire) -> LeaseKey:
    return fire.id, fire.attempt, fire.lease_token


def _end_and_id(found: tuple[int, str, Fire]) -> tuple[int, str]:
    return found[:2]
