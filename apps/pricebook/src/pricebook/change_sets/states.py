"""What may become of a change set. Pure: each function returns it as it is written, or refuses. The model draws the states.

Revisions are raised by whoever writes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from pricebook.editions.head_writes import Cause
from pricebook.errors import NotAllowed
from pricebook.model import ChangeSet, ChangeSetState
from pricebook.model.change_set import Decision
from tickler.table import MISSING, evolve

PATIENCE = timedelta(minutes=5)  # how long work on a change set may stand still before it is begun again

Unfinished = Literal["approving", "approved", "withdrawing"]

_REMEDIES: dict[ChangeSetState, str] = {
    "draft": "submit it first",
    "submitted": "send it back, approve it, or cancel it",
    "approving": "wait until it is approved, or take the approval back",
    "approved": "take the approval back first",
    "withdrawing": "wait until it is withdrawn",
    "settled": "roll it back with a new change set",
    "cancelled": "make a new change set",
    "superseded": "make a new change set",
}


def check_state(found: ChangeSet, *allowed: ChangeSetState) -> None:
    if found.state not in allowed:
        raise NotAllowed(f"change set {found.id} is {found.state}: {_REMEDIES[found.state]}")


def edited(found: ChangeSet, attributes: dict[str, object]) -> ChangeSet:
    check_state(found, "draft")
    if found.rolls_back is not MISSING:
        raise NotAllowed(f"change set {found.id} rolls another one back: cancel it, and make a new change set")
    return evolve(found, **attributes)


def submitted(found: ChangeSet, cause: Cause, now: datetime, stores: int, lines: int, scope: set[str]) -> ChangeSet:
    check_state(found, "draft")
    return evolve(
        found,
        state="submitted",
        submitted_by=cause.actor,
        submitted_at=now,
        stores=stores,
        lines=lines,
        scope=scope,
        refused=MISSING,
    )


def sent_back(found: ChangeSet) -> ChangeSet:
    check_state(found, "submitted")
    if found.rolls_back is not MISSING:
        raise NotAllowed(f"change set {found.id} rolls another one back, so there is nothing to edit: approve it, or cancel it")
    return evolve(found, state="draft", submitted_by=MISSING, submitted_at=MISSING, refused=MISSING)


def approving(found: ChangeSet, cause: Cause, now: datetime) -> ChangeSet:
    """Let the approval be carried out in all stores."""
    check_state(found, "submitted")
    return evolve(
        found,
        state="approving",
        approved_by=cause.actor,
        approved_at=now,
        decision=Decision(actor=cause.actor, reason=cause.reason, request=cause.request),
        due_at=now + PATIENCE,
        refused=MISSING,
    )


def approved(found: ChangeSet, first_at: datetime, last_at: datetime) -> ChangeSet:
    """Let it be approved: its prices are sealed in all stores."""
    check_state(found, "approving")
    return evolve(found, state="approved", first_at=first_at, last_at=last_at, due_at=last_at + PATIENCE)


def refused(found: ChangeSet, why: str, now: datetime) -> ChangeSet:
    """Let what was staged be taken back, because an approval cannot be carried out."""
    check_state(found, "approving")
    return evolve(found, state="withdrawing", withdrawn_to="submitted", refused=why[:2_000], due_at=now + PATIENCE)


def withdrawing(found: ChangeSet, to: Literal["submitted", "cancelled"], cause: Cause, now: datetime) -> ChangeSet:
    """Let the prices be taken back in all stores, whether they count or not."""
    check_state(found, "approving", "approved")
    if found.rolls_back is not MISSING:
        raise NotAllowed(
            f"change set {found.id} takes another one back, which cannot be undone: make a new change set with the prices"
        )
    if found.superseded_by is not MISSING:
        raise NotAllowed(f"change set {found.superseded_by} rolls change set {found.id} back: wait until that is done")
    return evolve(
        found,
        state="withdrawing",
        withdrawn_to=to,
        decision=Decision(actor=cause.actor, reason=cause.reason, request=cause.request),
        due_at=now + PATIENCE,
    )


def withdrawn(found: ChangeSet, now: datetime) -> ChangeSet:
    """Let it be what it was withdrawn to."""
    check_state(found, "withdrawing")
    after = evolve(
        found, approved_by=MISSING, approved_at=MISSING, first_at=MISSING, last_at=MISSING, due_at=MISSING, withdrawn_to=MISSING
    )
    if found.withdrawn_to == "cancelled":
        return evolve(after, state="cancelled", ended_at=now)
    return evolve(after, state="submitted")


def cancelled(found: ChangeSet, now: datetime) -> ChangeSet:
    """Let it be over before it was approved."""
    check_state(found, "draft", "submitted")
    return evolve(found, state="cancelled", ended_at=now)


def settled(found: ChangeSet, now: datetime) -> ChangeSet:
    check_state(found, "approved")
    return evolve(found, state="settled", due_at=MISSING, ended_at=now)


def claimed_by(found: ChangeSet, rollback: str) -> ChangeSet:
    """Let another change set take this one back, and nobody else."""
    check_state(found, "approved", "settled")
    if found.superseded_by not in (MISSING, rollback):
        raise NotAllowed(f"change set {found.superseded_by} rolls change set {found.id} back already: look at that one")
    return evolve(found, superseded_by=rollback)


def superseded(found: ChangeSet, now: datetime) -> ChangeSet:
    check_state(found, "approved", "settled")
    return evolve(found, state="superseded", due_at=MISSING, ended_at=now)


def check_four_eyes(found: ChangeSet, actor: str) -> None:
    if found.submitted_by == actor:
        raise NotAllowed(f"you have submitted change set {found.id}: somebody else approves it")
