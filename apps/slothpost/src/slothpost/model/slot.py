"""What became of one slot of a plan."""

from __future__ import annotations

from datetime import datetime

from slothpost.model.channel import ChannelName
from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Key, Missing, attr


class Slot(Entity, table=slothpost):
    """Either a post was drafted for it, or there was nothing to tell. Never neither: silence is shown, too."""

    product: Attr[str] = attr()
    channel: Attr[ChannelName] = attr()
    at: Attr[datetime] = attr()
    post: Attr[str | Missing] = attr(default=MISSING)
    nothing: Attr[str | Missing] = attr(default=MISSING)  # why there was nothing to tell
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)

    key = Key("PRODUCT" / product, "SLOT" / channel / at)
