"""A token of the API, as its user sees it in a list."""

from __future__ import annotations

from datetime import datetime

from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Key, Missing, attr


class IssuedToken(Entity, table=slothpost):
    """What a user may see of a token. What checks it is kept by the engine, which has only a hash of its text."""

    user: Attr[str] = attr()
    id: Attr[str] = attr()
    name: Attr[str]
    scopes: Attr[list[str]]
    created_at: Attr[datetime]
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)

    key = Key("USER" / user, "API_TOKEN" / id)
