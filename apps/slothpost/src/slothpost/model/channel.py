"""A network that a product posts to, with a weekly plan of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Key, Missing, attr

ChannelName = Literal["x", "threads"]
NETWORK_NAMES: Mapping[ChannelName, str] = {"x": "X", "threads": "Threads"}


class Channel(Entity, table=slothpost):
    """`days` has the days with a time, and no others: a day is on when it has one. Without any, nothing is scheduled."""

    product: Attr[str] = attr()
    name: Attr[ChannelName] = attr()
    user: Attr[str]
    days: Attr[dict[str, list[str]]] = attr(default={})
    zone: Attr[str]
    active_since: Attr[datetime]  # since when the plan is as it is: earlier slots were not missed
    paused: Attr[bool] = attr(default=False)
    account: Attr[str | Missing] = attr(default=MISSING)  # the id of an `Account` of the user
    topic_tag: Attr[str | Missing] = attr(default=MISSING)  # Threads shows it above a post

    key = Key("PRODUCT" / product, "CHANNEL" / name)
