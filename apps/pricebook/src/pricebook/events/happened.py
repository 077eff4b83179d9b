"""Which notice a transition leaves, which events a notice becomes, and which notice follows it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct

from pricebook.editions.head_writes import Transition
from pricebook.editions.transitions import ever_counts
from pricebook.events.types import LegacyPriceUpdated, PriceEvent, PricesApproved, PricesChanged, PricesWithdrawn
from pricebook.model import ALL, Edition, Head, Notice
from tickler.table import MISSING, evolve


class Planned(Struct, frozen=True):
    """An event, and what names it: the same notice gives the same names."""

    name: str
    event: PriceEvent | LegacyPriceUpdated

    @property
    def is_legacy(self) -> bool:
        return isinstance(self.event, LegacyPriceUpdated)


def notice_of(transition: Transition) -> Notice | None:
    """Return what is to be told of a transition: that prices were approved or withdrawn, or that an edition is settled."""
    before, after = transition.before, transition.after
    match transition.action:
        case "seal" | "move" if after is not None:
            return _notice(transition, "approved", after)
        case "cancel" if after is not None and before is not None and before.state != "open":
            return _notice(transition, "withdrawn", after)
        case "drop" if before is not None and ever_counts(before):
            return _notice(transition, "settled", before)
    return None


def events_of(notice: Notice, head: Head) -> Iterator[Planned]:
    edition = notice.edition
    if edition.from_at is MISSING:
        return
    name = f"{notice.store}/{notice.number}"
    match notice.kind:
        case "approved":
            yield Planned(f"prices.approved.v1/{name}/{_text(notice.at)}", _approved(notice, head, edition.from_at))
        case "withdrawn":
            until = edition.from_at if edition.to_at is MISSING else edition.to_at
            withdrawn = PricesWithdrawn(store=notice.store, edition=notice.number, effective_from=edition.from_at, until=until)
            yield Planned(f"prices.withdrawn.v1/{name}/{_text(notice.at)}", withdrawn)
        case "settled":
            yield from _change(notice, head, edition.from_at, "began")
            if edition.to_at is not MISSING:
                yield from _change(notice, head, edition.to_at, "withdrawn")
        case "ended":
            yield from _change(notice, head, notice.at, "ended")


def following(notice: Notice) -> Notice | None:
    """Return what has to be told after a notice: when values of a settled edition end next."""
    edition = notice.edition
    if notice.kind not in ("settled", "ended") or edition.from_at is MISSING or edition.to_at is not MISSING:
        return None
    after = edition.from_at if notice.kind == "settled" else notice.at
    at = min((until for until in edition.untils if until > after), default=None)
    return None if at is None else evolve(notice, kind="ended", at=at)


def _change(notice: Notice, head: Head, at: datetime, reason: Literal["began", "ended", "withdrawn"]) -> Iterator[Planned]:
    """Yield the event of a change, and those that readers of the first pricing service know: one for each channel."""
    changed = PricesChanged(
        store=notice.store,
        edition=notice.number,
        effective_from=at,
        local_time=_local(at, head.tz),
        time_zone=head.tz,
        reason=reason,
    )
    name = f"{notice.store}/{notice.number}/{reason}/{_text(at)}"
    yield Planned(f"prices.changed.v1/{name}", changed)
    for channel in sorted(head.channels | {ALL}):
        legacy = LegacyPriceUpdated(store=notice.store, channel=channel, effective_date=_local(at, head.tz))
        yield Planned(f"legacy/{name}/{channel}", legacy)


def _notice(transition: Transition, kind: Literal["approved", "withdrawn", "settled"], edition: Edition) -> Notice:
    return Notice(store=transition.store, number=transition.edition, kind=kind, at=transition.at, edition=edition)


def _approved(notice: Notice, head: Head, from_at: datetime) -> PricesApproved:
    edition = notice.edition
    return PricesApproved(
        store=notice.store,
        edition=notice.number,
        effective_from=from_at,
        local_time=_local(from_at, head.tz),
        time_zone=head.tz,
        ends=tuple(edition.untils),
        takes_back=None if edition.retracts is MISSING else edition.retracts,
    )


def _local(at: datetime, tz: str) -> str:
    return at.astimezone(ZoneInfo(tz)).replace(tzinfo=None).isoformat()


def _text(at: datetime) -> str:
    return f"{at.replace(tzinfo=None).isoformat()}Z"
