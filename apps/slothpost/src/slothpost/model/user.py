"""People who sign in."""

from __future__ import annotations

from datetime import datetime

from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, attr


class User(Entity, table=slothpost):
    """A person with products. The first one is the operator, who invites others and sees what no product claims."""

    id: Attr[str] = attr()
    name: Attr[str]
    zone: Attr[str] = attr(default="UTC")
    is_operator: Attr[bool] = attr(default=False)
    paused: Attr[bool] = attr(default=False)
    notify_url: Attr[str | Missing] = attr(default=MISSING)
    notify_secret: Attr[str | Missing] = attr(default=MISSING)  # encrypted
    created_at: Attr[datetime]

    key = Key("USER" / id, "USER")
    everyone = Index("gsi1", "USERS", id)
