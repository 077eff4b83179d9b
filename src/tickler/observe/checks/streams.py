"""Checks the consumers of tables in the same database: they get on, have lost nothing, and have parked nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tickler.observe.checks.snapshot import StoreSnapshot
from tickler.observe.diagnosis import Finding
from tickler.observe.human_format import count, some, span
from tickler.table.streams.status import MAX_COUNTED, ConsumerStatus


def stream_stopped(snapshot: StoreSnapshot) -> Finding | None:
    stopped = [each for each in snapshot.consumers if each.is_stopped]
    if not stopped:
        return None
    first = max(stopped, key=lambda each: each.waiting or 0)
    since = f" for {span(snapshot.now_ms - first.stuck_at_ms)}" if first.stuck_at_ms is not None else ""
    waiting = some(first.waiting or 0, "change waits", "changes wait")
    more = "more than " if first.waiting == MAX_COUNTED else ""
    why = "a process holds it, but its handler hangs or fails" if first.held else "no process runs it"
    return Finding(
        check="stream-stopped",
        severity="critical",
        count=len(stopped),
        says=some(len(stopped), "consumer of a table has stopped", "consumers of tables have stopped"),
        example=f"{first.name} of {first.table}: {more}{waiting}{since}, and {why}",
        remedy=_remedy("start it again, or read its log", stopped, "if it is gone for good, run `tickler table forget`"),
    )


def stream_lost(snapshot: StoreSnapshot) -> Finding | None:
    lost = [each for each in snapshot.consumers if each.has_lost]
    if not lost:
        return None
    first = lost[0]
    return Finding(
        check="stream-lost",
        severity="warning",
        count=len(lost),
        says=some(len(lost), "consumer has lost changes", "consumers have lost changes"),
        example=f"{first.name} of {first.table}: changes were deleted before it read them, noticed "
        f"{span(snapshot.now_ms - first.lost_at_ms)} ago",
        remedy="compare what it keeps with the table, as the sweep of its application does; this finding goes after 7 days",
    )


def stream_parked(snapshot: StoreSnapshot) -> Finding | None:
    with_parked = [each for each in snapshot.consumers if each.parked]
    if not with_parked:
        return None
    number, first = sum(each.parked for each in with_parked), with_parked[0]
    return Finding(
        check="stream-parked",
        severity="warning",
        count=number,
        says=some(number, "change of a table is parked, because its handler fails", "changes of tables are parked"),
        example=f"{first.name} of {first.table}: {count(first.parked, 'change')}",
        remedy="see `tickler table parked`, mend the handler, then `tickler table retry`",
    )


def _remedy(first: str, stopped: Sequence[ConsumerStatus], last: str) -> str:
    return first if all(each.held for each in stopped) else f"{first}; {last}"
