"""Cursors: where a page or a walk ended, as opaque text."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from tickler.errors import InvalidInput
from tickler.model.schedule import Id, checked_id

P = TypeVar("P")


def walk_cursor(place: object) -> str:
    """Where a walk stands, as text."""
    return msgspec.json.encode(place).decode()


def walk_place(cursor: str, kind: type[P]) -> P:
    """Where a walk stood. `InvalidInput` for what `walk_cursor` has not made of a place of that kind."""
    try:
        return msgspec.json.decode(cursor, type=kind)
    except (msgspec.MsgspecError, UnicodeError):
        raise not_a_cursor(cursor) from None


def walk_id(cursor: str) -> Id:
    """Where a walk by owner and key stood."""
    try:
        return checked_id(*walk_place(cursor, Id))
    except InvalidInput:
        raise not_a_cursor(cursor) from None


def not_a_cursor(cursor: object) -> InvalidInput:
    return InvalidInput(f"cursor: {ascii(cursor)[:40]} is not one that `walk` gave here: begin with None")


def _place(at: int, name: str) -> str:
    return f"{at}-{name}"


def _read_place(cursor: object) -> tuple[int, str]:
    at, _, name = str(cursor).partition("-")
    if not (at.isascii() and at.isdecimal() and len(at) < 16 and 0 < len(name) < 200 and name.isprintable()):
        raise _no_cursor(cursor)
    return int(at), name


def entry_number(name: str) -> int:
    """The name of an entry in a cursor, where a store counts its entries."""
    if not (name.isascii() and name.isdecimal() and len(name) < 19):
        raise _no_cursor(name)
    return int(name)


def _no_cursor(cursor: object) -> InvalidInput:
    return InvalidInput(f"after: {ascii(cursor)[:40]} is not a cursor: pass the `next` of an earlier page of the same list")
