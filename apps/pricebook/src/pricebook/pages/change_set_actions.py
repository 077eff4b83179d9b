"""What a person may do with a change set in its present state. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pricebook.access.caller import Caller, Role
from pricebook.model import ChangeSet, ChangeSetState
from tickler.table import MISSING

ActionName = Literal["edit", "submit", "send-back", "approve", "unapprove", "cancel", "roll-back"]

_DECIDED = ("approving", "approved")


class Actions(NamedTuple):
    """`needs_other`: the person may approve, but has submitted it, and somebody else has to."""

    names: frozenset[ActionName]
    needs_other: bool

    def __contains__(self, name: object) -> bool:
        return name in self.names


def actions_of(found: ChangeSet, caller: Caller, *, four_eyes: bool) -> Actions:
    names = {name for name in _POSSIBLE[found.state] if _role(name, found.state) in caller.roles}
    if found.rolls_back is not MISSING:
        names -= {"edit", "send-back"}
        if found.state in _DECIDED:
            names -= {"unapprove", "cancel"}
    if found.superseded_by is not MISSING:
        names -= {"unapprove", "cancel", "roll-back"}
    needs_other = "approve" in names and four_eyes and found.submitted_by == caller.id
    return Actions(frozenset(names - {"approve"} if needs_other else names), needs_other)


_POSSIBLE: dict[ChangeSetState, tuple[ActionName, ...]] = {
    "draft": ("edit", "submit", "cancel"),
    "submitted": ("approve", "send-back", "cancel"),
    "approving": ("unapprove", "cancel"),
    "approved": ("unapprove", "cancel", "roll-back"),
    "withdrawing": (),
    "settled": ("roll-back",),
    "cancelled": (),
    "superseded": (),
}


def _role(name: ActionName, state: ChangeSetState) -> Role:
    if name in ("edit", "submit"):
        return "edit"
    return "edit" if name == "cancel" and state not in _DECIDED else "approve"
