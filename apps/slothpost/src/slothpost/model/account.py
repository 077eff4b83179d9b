"""A user's account on a network, with its tokens."""

from __future__ import annotations

from datetime import datetime

from slothpost.model.channel import ChannelName
from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Key, Missing, attr


class Account(Entity, table=slothpost):
    """Tokens are encrypted. `broken` says why the account must be connected again; while it is there, nothing is posted."""

    user: Attr[str] = attr()
    id: Attr[str] = attr()  # network:remote_id
    network: Attr[ChannelName]
    remote_id: Attr[str]  # the network's id of the person who posts
    handle: Attr[str]
    access_token: Attr[str]
    refresh_token: Attr[str | Missing] = attr(default=MISSING)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING)
    obtained_at: Attr[datetime]
    connected_at: Attr[datetime | Missing] = attr(default=MISSING)  # tokens of an earlier connection say nothing of this one
    broken: Attr[str | Missing] = attr(default=MISSING)
    refreshing_until: Attr[datetime | Missing] = attr(default=MISSING)  # a lock: who refreshes has the account until then
    version: Attr[int] = attr(version=True)

    key = Key("USER" / user, "ACCOUNT" / id)
