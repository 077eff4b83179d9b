"""Pages of what a filter keeps, from pages that have more: as full as asked for, with true flags."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace

from pricebook.editions.pages import MAX_PAGE, Edge, NodePage, PageArgs

N = TypeVar("N")

Read = Callable[[PageArgs], Awaitable[NodePage[N]]]
Keep = Callable[[N], bool]


async def filtered_page(read: Read[N], page: PageArgs, keep: Keep[N]) -> NodePage[N]:
    """Return the page that `page` would be of the nodes that `keep` accepts.

    It reads on in larger and larger pages until it has one edge more than it returns: at most every edge of the list, twice.
    """
    page.check()
    backwards = page.backwards
    whole = await read(replace(page, last=0) if backwards else replace(page, first=0))  # refuses bad cursors, and has `at`
    found: list[Edge[N]] = []
    async for edge in _kept(read, page, keep, backwards=backwards):
        found.append(edge)
        if len(found) > page.size:
            break
    edges, is_more = found[: page.size], len(found) > page.size
    is_behind = await _is_any_behind(read, page, keep, edges, backwards=backwards)
    if backwards:
        return replace(whole, edges=edges[::-1], has_next=is_behind, has_previous=is_more)
    return replace(whole, edges=edges, has_next=is_more, has_previous=is_behind)


async def _kept(read: Read[N], page: PageArgs, keep: Keep[N], *, backwards: bool) -> AsyncIterator[Edge[N]]:
    """Yield the kept edges between the cursors of `page`, from the end that it begins at."""
    size, after, before = page.size + 1, page.after, page.before
    while True:
        size = min(size, MAX_PAGE)
        bounds = (
            PageArgs(last=size, before=before, after=after) if backwards else PageArgs(first=size, after=after, before=before)
        )
        edges = (await read(bounds)).edges
        for edge in reversed(edges) if backwards else edges:
            if keep(edge.node):
                yield edge
        if len(edges) < size:
            return
        if backwards:
            before = edges[0].cursor
        else:
            after = edges[-1].cursor
        size *= 2


async def _is_any_behind(read: Read[N], page: PageArgs, keep: Keep[N], edges: list[Edge[N]], *, backwards: bool) -> bool:
    """Tell whether kept edges lie on the side of a page that it began at."""
    start = page.before if backwards else page.after
    if edges:
        start = edges[0].cursor
    elif start is None:
        return False  # the page began at an end of the list
    else:
        start = await _neighbour(read, start, backwards=backwards)  # so that the edge of the cursor itself counts, too
    behind = PageArgs(first=1, after=start) if backwards else PageArgs(last=1, before=start)
    async for _ in _kept(read, behind, keep, backwards=not backwards):
        return True
    return False


async def _neighbour(read: Read[N], cursor: str, *, backwards: bool) -> str | None:
    """Return the cursor of the next edge in the direction of a page, whether it is kept or not; None at the end of the list."""
    page = await read(PageArgs(last=1, before=cursor) if backwards else PageArgs(first=1, after=cursor))
    return page.edges[0].cursor if page.edges else None
