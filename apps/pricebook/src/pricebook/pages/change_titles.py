"""What change sets are called, where only their ids are at hand."""

from __future__ import annotations

from collections.abc import Iterable

from pricebook.model import Edition
from pricebook.pages.requests import caller_of
from pricebook.timelines.coming import change_set_of
from pricebook.web.context import HttpRequest, book_of

MAX_TITLES = 100


async def titles_of(request: HttpRequest, editions: Iterable[Edition]) -> dict[str, str]:
    """Return the titles of the change sets of editions, by id, where the person may see them."""
    return await titles_of_ids(request, [id for each in editions if (id := change_set_of(each)) is not None])


async def titles_of_ids(request: HttpRequest, ids: Iterable[str]) -> dict[str, str]:
    wanted = list(dict.fromkeys(ids))[:MAX_TITLES]
    found = await book_of(request).change_sets.get_many(caller_of(request), wanted) if wanted else []
    return {each.id: each.title for each in found if each is not None}
