"""What other toolkits make of the same response of DynamoDB. Installed by `make bench`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dyntastic import Dyntastic
from pynamodb.attributes import BooleanAttribute, ListAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.models import Model


class PynamoOrder(Model):  # type: ignore[misc]  # its types are not read
    class Meta:
        table_name = "shop"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    entity = UnicodeAttribute()
    customer = UnicodeAttribute()
    id = UnicodeAttribute()
    status = UnicodeAttribute()
    placed_at = UnicodeAttribute()
    total_cents = NumberAttribute()
    city = UnicodeAttribute()
    email = UnicodeAttribute()
    note = UnicodeAttribute(null=True)
    paid = BooleanAttribute()
    tags = ListAttribute[UnicodeAttribute](of=UnicodeAttribute)


class DyntasticOrder(Dyntastic):  # type: ignore[misc]  # likewise
    __table_name__ = "shop"
    __hash_key__ = "pk"
    __range_key__ = "sk"

    pk: str
    sk: str
    entity: str
    customer: str
    id: str
    status: str
    placed_at: str
    total_cents: int
    city: str
    email: str
    note: str | None
    paid: bool
    tags: list[str]


def pynamodb_decoder(page: bytes) -> Callable[[], object]:
    return lambda: [PynamoOrder.from_raw_data(item) for item in json.loads(page)["Items"]]


def dyntastic_decoder(boto3: Callable[[], list[dict[str, Any]]]) -> Callable[[], object]:
    """dyntastic reads by boto3's resource, and hands its dictionaries to pydantic."""
    return lambda: [DyntasticOrder.model_validate(item) for item in boto3()]
