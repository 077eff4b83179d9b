"""Reads `dynamodb://TABLE?region=…&endpoint=…&timeout=…`."""

from __future__ import annotations

import re

from tickler.aws.address import Address
from tickler.database.store_url import StoreUrl
from tickler.errors import InvalidInput


def table_of(url: StoreUrl) -> str:
    if not re.fullmatch(r"[a-zA-Z0-9_.-]{3,255}", url.location):
        raise InvalidInput(
            f"{url.text}: name a table, as in dynamodb://schedules?region=eu-west-1: 3 to 255 letters, digits, '_', '-' and '.'"
        )
    return url.location


def address_of(url: StoreUrl) -> Address:
    """Return where the table is. `timeout=` is in seconds."""
    return Address(
        region=url.parameters.get("region"),
        endpoint=(url.parameters.get("endpoint") or "").rstrip("/") or None,
        timeout_s=url.seconds("timeout", Address().timeout_s),
    )
