"""What one poll of a source found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

import msgspec

from slothpost.activity.happening import Happening
from slothpost.model import Connection
from slothpost.sources.api import Answer
from tickler.table import MISSING

LOOK_BACK = timedelta(days=14)  # the first poll takes in what is not older, and so does one after a long silence
OVERLAP = timedelta(days=3)  # for what sources list late; what is known already is recognised


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, and the connection as it is then: with new ETags, and perhaps another name."""

    connection: Connection
    happenings: tuple[Happening, ...] = ()
    wait: timedelta = timedelta(0)  # before the next poll, as the source asks
    problem: str = ""  # why a part could not be read, while the others could


Look = Callable[[Connection, datetime], Awaitable[Found]]


def polled_since(connection: Connection, now: datetime) -> datetime:
    """Return from when on things are news."""
    earliest = now - LOOK_BACK
    return earliest if connection.polled_at is MISSING else max(connection.polled_at - OVERLAP, earliest)


def with_etags(etags: Mapping[str, str], **answers: Answer) -> dict[str, str]:
    """Return the ETags with those of new answers. What has none is asked for as a whole the next time."""
    changed = dict(etags)
    for name, answer in answers.items():
        if answer.etag is not None:
            changed[name] = answer.etag
        elif not answer.is_unchanged:
            changed.pop(name, None)
    return changed
