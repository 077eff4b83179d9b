"""Pages of lists: how many items at a time, and the cursor of the next page."""

from __future__ import annotations

from typing import Annotated, Protocol

import msgspec
from msgspec import UNSET, Meta, UnsetType

DEFAULT_LIMIT = 50
MAX_LIMIT = 200

Limit = Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="How many items a page has at most.")]
After = Annotated[str, Meta(min_length=1, max_length=2_000, description="The `next` of the page before.")]
Next = Annotated[str | None, Meta(description="The cursor of the next page; null at the end.")]


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of a list."""

    limit: Limit = DEFAULT_LIMIT
    after: After | UnsetType = UNSET

    @property
    def cursor(self) -> str | None:
        return None if self.after is UNSET else self.after


class _Page(Protocol):
    @property
    def has_next(self) -> bool: ...

    @property
    def end(self) -> str | None: ...


def next_of(page: _Page) -> str | None:
    return page.end if page.has_next else None
