"""One walk of a reader through a list, page by page: its instant, which cursors carry, and the part of the list to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from pricebook.editions.cursors import Cursors, Position
from pricebook.editions.pages import Edge, NodePage, PageArgs
from pricebook.editions.ranges import Window
from pricebook.editions.timing import Timing
from pricebook.errors import InvalidCursor

F = TypeVar("F")
N = TypeVar("N")


class Traversal(NamedTuple):
    """What is asked for. `wanted` is one more than the page has, which tells whether there are more."""

    cursors: Cursors
    at: datetime
    window: Window
    size: int
    backwards: bool

    @classmethod
    def begin(cls, page: PageArgs, cursors: Cursors, coordinates: int, now: datetime, timing: Timing) -> Traversal:
        """Read the cursors of a request. Without any, the traversal begins, and its instant is now."""
        page.check()
        after = None if page.after is None else cursors.read(page.after, coordinates)
        before = None if page.before is None else cursors.read(page.before, coordinates)
        if after is not None and before is not None and after[0] != before[0]:
            raise InvalidCursor("the cursors are of two traversals: use two of the same")
        found = after or before
        at = now if found is None else found[0]
        if now - at > timing.retention:
            raise InvalidCursor("the cursor is too old: former prices are gone. Begin with the first page")
        window = Window(None if after is None else after[1], None if before is None else before[1])
        return cls(cursors, at, window, page.size, page.backwards)

    @property
    def wanted(self) -> int:
        return self.size + 1

    @property
    def is_empty(self) -> bool:
        low, high = self.window
        return low is not None and high is not None and low >= high

    def page(self, found: Sequence[F], position: Callable[[F], Position], node: Callable[[F], N]) -> NodePage[N]:
        """Make a page of what was found in walking order.

        A price that counts at an instant always counts at that instant. So the edge of a cursor still has its place in the list,
        and there is something before the page that follows it.
        """
        more = len(found) > self.size
        kept = found[: self.size]
        if self.backwards:
            kept = kept[::-1]
        write = self.cursors.writer(self.at)
        edges = [Edge(node(each), position(each), write) for each in kept]
        has_next = self.window.high is not None or (more and not self.backwards)
        has_previous = self.window.low is not None or (more and self.backwards)
        return NodePage(edges, has_next, has_previous, self.at)
