"""What a user should know: a draft waits, a post failed, an account must be connected again."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Key, Missing, attr

NoticeKind = Literal["draft", "undecided", "missed", "failed", "unconfirmed", "postponed", "reconnect", "source"]


class Notice(Entity, table=slothpost):
    """Shown on the page, and sent to the user's webhook."""

    user: Attr[str] = attr()
    at: Attr[datetime] = attr()
    id: Attr[str] = attr()
    kind: Attr[NoticeKind]
    text: Attr[str]
    post: Attr[str | Missing] = attr(default=MISSING)
    product: Attr[str | Missing] = attr(default=MISSING)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)

    key = Key("USER" / user, "NOTICE" / at.descending() / id)
