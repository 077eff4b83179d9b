"""Values that others wrote, made safe to store and to show."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from slothpost.activity.happening import ActivityId
from slothpost.text.invisible import visible

MAX_TEXT = 2_000
MAX_URL = 500
MAX_NAME = 64  # of what becomes part of a key

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAME = re.compile(rf"[\w.:@/+=-]{{1,{MAX_NAME}}}", re.ASCII)
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
_LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()

T = TypeVar("T")


class Unreadable(Exception):
    """A body is not what its source documents. `str` of it says where."""


def decoded(body: bytes | str | msgspec.Raw, type: type[T]) -> T:
    """Decode a body. `Unreadable` if it is not JSON, or if a field that is used has another type."""
    try:
        return msgspec.json.decode(body, type=type)
    except msgspec.ValidationError as error:
        raise Unreadable(f"the body is not as documented: {error}") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Unreadable("the body is not JSON") from None


def text(given: str | None, most: int = MAX_TEXT) -> str:
    """Return a text without characters that nobody sees, cut to a length."""
    return visible((given or "").replace("\r\n", "\n").replace("\r", "\n")[: 2 * most]).strip()[:most]


def line(given: str | None, most: int = 200) -> str:
    """Return a text on one line."""
    return " ".join(text(given, 2 * most).split())[:most]


def web_address(given: str | None) -> str | None:
    """Return an address that a page may link to, None for anything else, such as `javascript:`."""
    if not given or len(given) > MAX_URL or not given.isprintable() or " " in given:
        return None
    return given if given.startswith(("https://", "http://")) else None


def commit_id(sha: str | None) -> ActivityId | None:
    """Return the id of the activity of a commit, None if this is no commit's hash."""
    return ActivityId(f"commit:{sha}") if sha and _SHA.fullmatch(sha) else None


def short_name(given: str) -> str:
    """Return an id of somebody else's as a part of our keys: as it is, or its digest if it is long or unusual."""
    if not given:
        return given
    return given if _NAME.fullmatch(given) else hashlib.blake2b(given.encode(errors="replace"), digest_size=20).hexdigest()


def instant(given: datetime | int | None) -> datetime | None:
    """Return a datetime, or seconds since the epoch, in UTC; None if it is missing or absurd."""
    if given is None:
        return None
    if isinstance(given, datetime):
        if given.tzinfo is None:
            given = given.replace(tzinfo=UTC)
        try:
            given = given.astimezone(UTC)
        except OverflowError:
            return None
        return given if _EARLIEST <= given.timestamp() < _LATEST else None
    return datetime.fromtimestamp(given, UTC) if _EARLIEST <= given < _LATEST else None


def instant_of_ms(given: int | float | None) -> datetime | None:
    """Return milliseconds since the epoch as a datetime."""
    if given is None or not 1000 * _EARLIEST <= given < 1000 * _LATEST:  # JSON has numbers that no division takes
        return None
    return datetime.fromtimestamp(given / 1000, UTC)
