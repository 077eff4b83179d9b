"""All operations of the API."""

from __future__ import annotations

from slothpost.web.api import account, activity, channels, decisions, posts, products
from slothpost.web.api.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *account.OPERATIONS,
    *products.OPERATIONS,
    *channels.OPERATIONS,
    *activity.OPERATIONS,
    *posts.OPERATIONS,
    *decisions.OPERATIONS,
)
