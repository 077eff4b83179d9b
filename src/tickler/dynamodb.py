"""The sparse index on a DynamoDB table of your own. Needs the extra `dynamodb`."""

from typing import TYPE_CHECKING

from tickler.database.extras import needing_extra

if TYPE_CHECKING:
    from tickler.stores.dynamodb import DueItem, DynamoIndex

__all__ = ["DueItem", "DynamoIndex"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(needing_extra("tickler.stores.dynamodb", name), name)
    raise AttributeError(f"module 'tickler.dynamodb' has no attribute {name!r}")
