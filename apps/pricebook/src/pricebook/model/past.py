"""What a price was, once rows no longer hold it: under the seed's keys, one item for each value."""

from __future__ import annotations

from datetime import datetime

from pricebook.model.price import PriceKey, Value
from pricebook.model.table import pricebook
from tickler.table import Attr, Entity, Key, attr


class PastPrice(Entity, table=pricebook):
    store: Attr[str] = attr()
    channel: Attr[str] = attr()
    type: Attr[str] = attr()
    product: Attr[str] = attr()
    from_at: Attr[datetime] = attr()
    value: Attr[Value]

    key = Key("PAST#STORE" / store, channel / type / product / from_at)


class PastCombinationPrice(Entity, table=pricebook):
    store: Attr[str] = attr()
    channel: Attr[str] = attr()
    type: Attr[str] = attr()
    product: Attr[str] = attr()
    combination: Attr[str] = attr()
    from_at: Attr[datetime] = attr()
    value: Attr[Value]

    key = Key("PAST#STORE" / store, channel / type / product / combination / from_at)


Past = PastPrice | PastCombinationPrice


def past_of(key: PriceKey, from_at: datetime, value: Value) -> Past:
    if key.combination is None:
        return PastPrice(store=key.store, channel=key.channel, type=key.type, product=key.product, from_at=from_at, value=value)
    return PastCombinationPrice(
        store=key.store,
        channel=key.channel,
        type=key.type,
        product=key.product,
        combination=key.combination,
        from_at=from_at,
        value=value,
    )
