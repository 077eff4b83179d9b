"""What pydynox makes of the same response of DynamoDB. It adds a plugin to every run of pytest, so `make bench` lets it be."""

from __future__ import annotations

import json
from collections.abc import Callable

from pydynox import Model, ModelConfig
from pydynox.attributes import BooleanAttribute, ListAttribute, NumberAttribute, StringAttribute
from pydynox.pydynox_core import item_from_dynamo


class PydynoxOrder(Model):  # type: ignore[misc]  # its types are not read
    model_config = ModelConfig(table="shop")

    pk = StringAttribute(partition_key=True)
    sk = StringAttribute(sort_key=True)
    entity = StringAttribute()
    customer = StringAttribute()
    id = StringAttribute()
    status = StringAttribute()
    placed_at = StringAttribute()
    total_cents = NumberAttribute()
    city = StringAttribute()
    email = StringAttribute()
    note = StringAttribute()
    paid = BooleanAttribute()
    tags = ListAttribute()


def pydynox_decoder(page: bytes) -> Callable[[], object]:
    """pydynox parses the response in Rust, in its own client. What is measured is the rest: making models of dictionaries."""
    items = [item_from_dynamo(item) for item in json.loads(page)["Items"]]
    return lambda: [PydynoxOrder.from_dict(item) for item in items]
