"""Parts of one TransactWriteItems that several parties contribute."""

from __future__ import annotations

from typing import NamedTuple

MAX_TRANSACTION_ITEMS = 100


class TransactionPart(NamedTuple):
    """One entry of `TransactItems`. If its condition fails, others changed `name`."""

    request: dict[str, object]
    name: str
