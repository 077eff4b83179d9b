"""What the audit keeps of a transition. Pure.

The id of an entry has the order of the transitions that happen within a millisecond, and no two of them have the same.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pricebook.editions.head_writes import Cause, Transition
from pricebook.model import AuditEntry, ChangeSet
from tickler.table import MISSING


def store_subject(store: str) -> str:
    return f"store/{store}"


def change_subject(id: str) -> str:
    return f"change/{id}"


def entry_of_edition(transition: Transition) -> AuditEntry:
    before, after = transition.before, transition.after
    edition = after or before
    return AuditEntry(
        subject=store_subject(transition.store),
        at=transition.at,
        id=f"{transition.rev:012}-{transition.edition}-{transition.action}",
        day=transition.at.astimezone(UTC).date(),
        actor=transition.cause.actor,
        action=transition.action,
        reason=transition.cause.reason,
        request=transition.cause.request,
        store=transition.store,
        edition=transition.edition,
        change_set=MISSING if edition is None else edition.change_set,
        before=before or MISSING,
        after=after or MISSING,
    )


def entry_of_change(
    action: str, before: ChangeSet | None, after: ChangeSet, at: datetime, cause: Cause, *, lines: int | None = None
) -> AuditEntry:
    """Return the entry of a write of a change set, which names its revision afterwards. `lines` were added or removed."""
    return AuditEntry(
        subject=change_subject(after.id),
        at=at,
        id=f"{after.rev:012}",
        day=at.astimezone(UTC).date(),
        actor=cause.actor,
        action=action,
        reason=cause.reason,
        request=cause.request,
        change_set=after.id,
        scope=after.scope,
        state_before=MISSING if before is None else before.state,
        state_after=after.state,
        lines=MISSING if lines is None else lines,
    )
