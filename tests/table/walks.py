"""A table whose pages are walked: two entities in one partition, equal sort keys in an index, and items that have expired."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Table, attr

TABLE = Table("walks")
NOW = datetime(2099, 3, 15, tzinfo=UTC)  # ahead of the clock of DynamoDB, which would delete what has expired


class Note(Entity, table=TABLE):
    room: Attr[str] = attr()
    n: Attr[int] = attr()
    rank: Attr[int | Missing] = attr(default=MISSING)
    red: Attr[bool] = attr(default=False)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)
    key = Key("ROOM" / room, "NOTE" / n)
    by_rank = Index("gsi1", "ROOM" / room, rank)


class Task(Entity, table=TABLE):
    room: Attr[str] = attr()
    n: Attr[int] = attr()
    rank: Attr[int | Missing] = attr(default=MISSING)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)
    key = Key("ROOM" / room, "TASK" / n)
    by_rank = Index("gsi1", "ROOM" / room, rank)


Item = Any  # a Note or a Task


class Asked(NamedTuple):
    """A query of a room, and the same in Python: which items it has, and in which order."""

    selections: Callable[[str], list[Any]]
    has: Callable[[Item], bool]
    order: Callable[[Item], Any]
    where: Any = None
    backwards: bool = False


def _by_key(item: Item) -> Any:
    return type(item).__name__, item.n


def _by_rank(item: Item) -> Any:
    return item.rank


def _ranked(item: Item) -> bool:
    return item.rank is not MISSING


def _is_note(item: Item) -> bool:
    return isinstance(item, Note)


QUERIES = {
    "notes": Asked(lambda room: [Note.key(room)], _is_note, _by_key),
    "notes, newest first": Asked(lambda room: [Note.key(room).newest_first()], _is_note, _by_key, backwards=True),
    "some notes": Asked(
        lambda room: [Note.key(room).after(1).before(9)], lambda item: _is_note(item) and 1 < item.n < 9, _by_key
    ),
    "red notes": Asked(lambda room: [Note.key(room)], lambda item: _is_note(item) and item.red, _by_key, Note.red == True),  # noqa: E712
    "notes and tasks": Asked(lambda room: [Note.key(room), Task.key(room)], lambda item: True, _by_key),
    "three spans": Asked(
        lambda room: [Note.key(room).until(2), Note.key(room).since(6), Task.key(room).after(4)],
        lambda item: item.n > 4 if isinstance(item, Task) else item.n <= 2 or item.n >= 6,
        _by_key,
    ),
    "three spans, red ones, backwards": Asked(
        lambda room: [
            each.newest_first() for each in (Note.key(room).before(3), Note.key(room).between(5, 9), Task.key(room).until(6))
        ],
        lambda item: item.n <= 6 if isinstance(item, Task) else item.red and (item.n < 3 or 5 <= item.n <= 9),
        _by_key,
        Note.red == True,  # noqa: E712
        backwards=True,
    ),
    "notes by rank": Asked(lambda room: [Note.by_rank(room)], lambda item: _is_note(item) and _ranked(item), _by_rank),
    "red notes by rank": Asked(
        lambda room: [Note.by_rank(room).newest_first()],
        lambda item: _is_note(item) and _ranked(item) and item.red,
        _by_rank,
        Note.red == True,  # noqa: E712
        backwards=True,
    ),
    "all by rank": Asked(lambda room: [Note.by_rank(room), Task.by_rank(room)], _ranked, _by_rank),
    "overlapping ranks": Asked(
        lambda room: [Note.by_rank(room).until(1), Task.by_rank(room).since(1)],
        lambda item: _ranked(item) and (item.rank <= 1 if _is_note(item) else item.rank >= 1),
        _by_rank,
    ),
    "ranks apart": Asked(
        lambda room: [each.newest_first() for each in (Note.by_rank(room).under(0), Note.by_rank(room).after(1))],
        lambda item: _is_note(item) and _ranked(item) and item.rank != 1,
        _by_rank,
        backwards=True,
    ),
}


class Drawn(NamedTuple):
    """An item without its room. The names of those that others write and delete are odd, of those that stay even."""

    is_note: bool
    n: int
    rank: int | None
    red: bool
    has_expired: bool = False

    def item(self, room: str) -> Item:
        rest: dict[str, Any] = {} if self.rank is None else {"rank": self.rank}
        if self.has_expired:
            rest["expires_at"] = NOW - timedelta(days=1)
        return Note(room=room, n=self.n, red=self.red, **rest) if self.is_note else Task(room=room, n=self.n, **rest)


class Disturbance(NamedTuple):
    """Others put an item, or delete it."""

    drawn: Drawn
    deletes: bool


class Step(NamedTuple):
    size: int
    forward: bool
    before: list[Disturbance]


_ranks = st.sampled_from([0, 0, 0, 1, 2, None])
_stays = st.builds(Drawn, st.booleans(), st.integers(0, 5).map(lambda n: 2 * n), _ranks, st.booleans())
_others = st.builds(
    Drawn, st.booleans(), st.integers(0, 5).map(lambda n: 2 * n + 1), _ranks, st.booleans(), st.sampled_from([False, False, True])
)
_disturbances = st.lists(st.builds(Disturbance, _others, st.booleans()), max_size=3)

names = st.sampled_from(sorted(QUERIES))
staying = st.lists(_stays, max_size=12, unique_by=lambda each: (each.is_note, each.n))
passing = st.lists(_others, max_size=6, unique_by=lambda each: (each.is_note, each.n))
steps = st.lists(st.builds(Step, st.integers(1, 4), st.booleans(), _disturbances), max_size=8)
sizes = st.lists(st.integers(1, 5), min_size=1, max_size=4)
disturbances = st.lists(_disturbances, min_size=1, max_size=4)
