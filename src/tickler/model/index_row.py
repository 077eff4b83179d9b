"""Rows of the schedule index."""

from __future__ import annotations

import msgspec

from tickler.when import When


class IndexRow(msgspec.Struct, frozen=True, gc=False):
    """One active schedule. It is due at `next_fire_at`: the nominal instant plus the offset of its spread."""

    owner: str
    key: str
    when: When
    next_fire_at: int
    ends_at: int | None = None  # no nominal instant after this one
    offset_ms: int = 0
    managed: bool = False  # it mirrors a schedule of `schedules`

    @property
    def timezone(self) -> str:
        return self.when.tz

    @property
    def nominal_at(self) -> int:
        return self.next_fire_at - self.offset_ms


class SetAside(msgspec.Struct, frozen=True):
    """A row that was removed from the index because its `when` cannot be read, with all its values."""

    owner: str
    key: str
    when_text: str
    tz: str
    next_fire_at: int
    reason: str
    managed: bool
