"""What the change sets of editions are called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pricebook.model import Edition
from pricebook.pages.requests import caller_of
from pricebook.timelines.coming import change_set_of
from pricebook.web.context import HttpRequest, book_of

MAX_TITLES = 50


async def titles_of(request: HttpRequest, editions: Iterable[Edition]) -> dict[str, str]:
    """Return the titles of the first change sets among those of editions, by id, where the person may see them."""
    ids = list(dict.fromkeys(id for each in editions if (id := change_set_of(each)) is not None))[:MAX_TITLES]
    if not ids:
        return {}
    change_sets: Any = book_of(request).change_sets  # type: ignore[attr-defined,unused-ignore]
    return {each.id: each.title for each in await change_sets.get_many(caller_of(request), ids) if each is not None}
