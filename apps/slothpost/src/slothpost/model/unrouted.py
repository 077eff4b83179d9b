"""Deliveries that no product claims."""

from __future__ import annotations

from datetime import datetime

from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, attr


class Unrouted(Entity, table=slothpost):
    """A verified Vercel delivery of a project that no product has. The operator sees it; a user only if it is of their team."""

    id: Attr[str] = attr()  # of the delivery
    project: Attr[str]
    owner: Attr[str | Missing] = attr(default=MISSING)  # the team or user in the payload
    event: Attr[str]
    summary: Attr[str]
    name: Attr[str] = attr(default="")  # of the project, for people
    happenings: Attr[str] = attr(default="[]")  # as JSON, for the product that connects the project later
    received_at: Attr[datetime] = attr()
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)

    key = Key("UNROUTED" / id, "UNROUTED")
    every = Index("gsi1", "UNROUTED", received_at / id)
    of_owner = Index("gsi2", "UNROUTED_OF" / owner, received_at / id)
