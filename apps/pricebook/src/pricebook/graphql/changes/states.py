"""The states of change sets in the schema."""

from __future__ import annotations

from enum import Enum

import strawberry


@strawberry.enum(description="How far a change set is. It is effective while it is approved and its instant has passed.")
class ChangeSetState(Enum):
    DRAFT = "draft"
    SUBMITTED = "submitted"
    APPROVING = "approving"
    APPROVED = "approved"
    WITHDRAWING = "withdrawing"
    SETTLED = "settled"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


@strawberry.enum(description="How far a change set is in one store.")
class ChangeStoreState(Enum):
    PENDING = "pending"
    OPEN = "open"
    STAGED = "staged"
    SEALED = "sealed"
    SETTLED = "settled"
