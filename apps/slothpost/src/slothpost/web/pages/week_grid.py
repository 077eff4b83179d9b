"""A week of all channels: what stands at each slot, as a pure function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Literal

import msgspec

from slothpost.model import Channel, Post, Product, Slot
from slothpost.planning.channel_plan import stored_plan
from slothpost.web.pages.time_format import Clock, zone_of
from tickler.table import MISSING

DAYS = 7


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What stands at an instant: a post, a slot that is still empty, or a slot for which there was nothing to tell."""

    at: datetime
    kind: Literal["post", "empty", "nothing"]
    post: Post | None = None
    note: str = ""
    draft_at: datetime | None = None


class Row(msgspec.Struct, frozen=True):
    """The week of one channel: the entries of each of its days."""

    product: Product
    channel: Channel
    days: list[list[Entry]]


def monday_of(day: date) -> date:
    return day - timedelta(days=day.weekday())


def bounds(monday: date, clock: Clock) -> tuple[datetime, datetime]:
    """Return the instants at which a week begins and ends for the reader."""
    first, after = (datetime.combine(day, datetime.min.time(), clock.zone) for day in (monday, monday + timedelta(days=DAYS)))
    return first, after


def week_row(
    product: Product, channel: Channel, monday: date, clock: Clock, *, posts: Iterable[Post], slots: Iterable[Slot]
) -> Row:
    """Return a row. `posts` and `slots` are those of the channel in that week."""
    stored = {slot.at: slot for slot in slots}
    entries = [Entry(at=post.slot_at, kind="post", post=post) for post in posts]
    taken = {entry.at for entry in entries if entry.post is not None and entry.post.state != "skipped"}
    first, after = bounds(monday, clock)
    local = first.astimezone(zone_of(channel.zone)).date()
    for slot in stored_plan(product, channel).slots_from(local - timedelta(days=1), DAYS + 3):
        if first <= slot.at < after and slot.at not in taken:
            entry = _slot_entry(slot.at, slot.draft_at, stored.get(slot.at), channel, clock.now)
            entries += [] if entry is None else [entry]
    entries += [
        Entry(at=slot.at, kind="nothing", note=slot.nothing)
        for slot in stored.values()
        if slot.nothing is not MISSING and slot.at not in taken and all(entry.at != slot.at for entry in entries)
    ]
    return Row(product, channel, _by_day(sorted(entries, key=lambda entry: entry.at), monday, clock))


def _slot_entry(at: datetime, draft_at: datetime, stored: Slot | None, channel: Channel, now: datetime) -> Entry | None:
    """Return what stands at a slot without a post; None if it is no slot of this time."""
    if stored is not None and stored.nothing is not MISSING:
        return Entry(at=at, kind="nothing", note=stored.nothing)
    if at > now:
        return Entry(at=at, kind="empty", draft_at=draft_at if draft_at > now and stored is None else None)
    return None  # before the plan was as it is, or its post was moved away


def _by_day(entries: Sequence[Entry], monday: date, clock: Clock) -> list[list[Entry]]:
    days: list[list[Entry]] = [[] for _ in range(DAYS)]
    for entry in entries:
        number = (entry.at.astimezone(clock.zone).date() - monday).days
        if 0 <= number < DAYS:
            days[number].append(entry)
    return days
