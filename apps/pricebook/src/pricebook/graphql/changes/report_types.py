"""What a change set would do, in the schema."""

from __future__ import annotations

from enum import Enum

import strawberry

from pricebook.graphql.prices.types import Money, PriceSubject
from pricebook.graphql.scalars import Instant


@strawberry.enum(description="An error prevents the approval; a warning does not.")
class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@strawberry.type(description="What somebody should look at before the approval.")
class Finding:
    severity: Severity
    code: str = strawberry.field(
        description="negative, large_change, unknown_product, currency, conflict, unchanged, late or unknown_store."
    )
    message: str
    key: PriceSubject | None = strawberry.field(name="subject")
    other: strawberry.ID | None = strawberry.field(
        name="otherChangeSetId", description="The change set that this one is in conflict with."
    )


@strawberry.type(description="A price before and after the change.")
class ReportLine:
    key: PriceSubject = strawberry.field(name="subject")
    before: Money | None
    after: Money | None
    share: float | None = strawberry.field(description="By how much the price changes: -0.2 is a fifth less.")


@strawberry.type(description="What would happen if a change set were approved now.")
class ChangeReport:
    lines: int
    stores: int
    added: int
    removed: int
    raised: int
    lowered: int
    unchanged: int
    first_at: Instant | None = strawberry.field(name="firstEffectiveDate")
    last_at: Instant | None = strawberry.field(name="lastEffectiveDate")
    errors: int
    warnings: int
    can_approve: bool
    findings: list[Finding] = strawberry.field(description="At most 200.")
    largest: list[ReportLine] = strawberry.field(description="The largest changes, at most 50.")
