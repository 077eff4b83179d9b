"""Requests of DynamoDB that are made again, because another writer was faster."""

from __future__ import annotations

from typing import Any

from table.goods import NOW, Counter, Item, goods, item

from tickler.table.engines.dynamodb.items import item_of
from tickler.table.engines.dynamodb.requests import Seen, Writing
from tickler.table.operation import Delete, Operation, Put


def guarded_names(operation: Operation, found: Any) -> set[str]:
    """Return the attributes in the condition of a request that is made again for an item that was found."""
    writing = Writing(operation, 0)
    writing.overtaken(Seen(item_of(operation.id.definition, found), found))
    body: Any = writing.request().body
    return set(body["ExpressionAttributeNames"].values())


def test_a_put_is_guarded_on_the_version_that_it_saw() -> None:
    counter = Counter(id="a", version=3)
    assert guarded_names(Put(counter.key, counter), counter) == {"entity", "version"}


def test_an_operation_is_guarded_on_the_expiry_and_on_what_its_condition_is_about() -> None:
    found = item(expires_at=NOW)
    assert guarded_names(Delete(found.key, Item.note.exists()), found) == {"entity", "expires_at", "note"}
    assert guarded_names(Delete(found.key), found) == {"entity", "expires_at"}


def test_an_item_that_is_gone_must_stay_so() -> None:
    writing = Writing(Put(item().key, item(), None, "create"), 0)
    writing.overtaken(Seen(None, None))
    assert writing.request().body["ConditionExpression"] == "attribute_not_exists(pk)"
    assert goods.entities["Item"].id_of(item()) == writing.id
