"""Cursors: the position at which a page or a walk ended, as opaque text. Each kind has a pair of functions."""

from __future__ import annotations

import base64
import binascii
from typing import TypeVar

import msgspec

from tickler.errors import InvalidInput
from tickler.model.schedule import Id, checked_id

P = TypeVar("P")


def encode_walk(position: object) -> str:
    """Return the cursor of a walk through a store, whose position is anything that JSON can hold."""
    return msgspec.json.encode(position).decode()


def decode_walk(cursor: str, kind: type[P]) -> P:
    """Return the position of a walk. `InvalidInput` unless it is one of that kind."""
    try:
        return msgspec.json.decode(cursor, type=kind)
    except (msgspec.MsgspecError, UnicodeError):
        raise invalid_walk_cursor(cursor) from None


def decode_walk_id(cursor: str) -> Id:
    """Return the position of a walk by owner and key."""
    try:
        return checked_id(*decode_walk(cursor, Id))
    except InvalidInput:
        raise invalid_walk_cursor(cursor) from None


def invalid_walk_cursor(cursor: object) -> InvalidInput:
    return InvalidInput(f"cursor: {ascii(cursor)[:40]} does not come from a `walk` of this store: start with None")


def encode_schedule(id: Id) -> str:
    """Return the cursor of the page of schedules that follows `id`."""
    return base64.urlsafe_b64encode(msgspec.json.encode(id)).decode().rstrip("=")


def decode_schedule(cursor: str) -> Id:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return checked_id(*msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=tuple[str, str]))
    except (binascii.Error, msgspec.MsgspecError, ValueError, TypeError, AttributeError):
        raise _invalid_page_cursor(cursor) from None


def encode_instant(at: int, name: str) -> str:
    """Return the cursor of a page of fires or of history, which are ordered by instant and then by name."""
    return f"{at}-{name}"


def decode_instant(cursor: object) -> tuple[int, str]:
    at, _, name = str(cursor).partition("-")
    if not (at.isascii() and at.isdecimal() and len(at) < 16 and 0 < len(name) < 200 and name.isprintable()):
        raise _invalid_page_cursor(cursor)
    return int(at), name


def decode_entry_number(name: str) -> int:
    """Return the number of a history entry, in stores that name their entries by number."""
    if not (name.isascii() and name.isdecimal() and len(name) < 19):
        raise _invalid_page_cursor(name)
    return int(name)


def decode_record_name(cursor: object) -> str:
    """Check the cursor of a page of the audit log: the name of a record, which needs no encoding."""
    if not (isinstance(cursor, str) and len(cursor) <= 40 and cursor.isascii() and cursor.replace("-", "").isalnum()):
        raise _invalid_page_cursor(cursor)
    return cursor


def _invalid_page_cursor(cursor: object) -> InvalidInput:
    return InvalidInput(f"after: {ascii(cursor)[:40]} is not a cursor: pass the `next` of an earlier page of the same list")
