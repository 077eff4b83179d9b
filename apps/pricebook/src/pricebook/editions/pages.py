"""What readers get: prices, upcoming changes, and pages of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct

from pricebook.errors import InvalidField
from pricebook.money import Money

N = TypeVar("N")

DEFAULT_PAGE = 64
MAX_PAGE = 2_048


class PriceNode(Struct, frozen=True):
    """A price that counts at the instant of its page. `channel` is the one that it was set for: a channel's own, or ALL."""

    store: str
    channel: str
    type: str
    product: str
    amount: Money
    effective_from: datetime
    until: datetime | None = None
    lowest_30_days: Money | None = None
    combination: str | None = None  # of types that have one, such as Swap


class ChangeNode(Struct, frozen=True):
    """A price that will count from `effective_from` on. Without an amount, the product has no price from then on."""

    store: str
    channel: str
    type: str
    product: str
    amount: Money | None
    effective_from: datetime
    edition: int
    until: datetime | None = None
    lowest_30_days: Money | None = None
    combination: str | None = None


class Edge(Struct, Generic[N], eq=False):
    """A node with its cursor, which is signed when it is first asked for."""

    node: N
    _position: tuple[str, ...]
    _write: Callable[[tuple[str, ...]], str]
    _cursor: str | None = None

    @property
    def cursor(self) -> str:
        if self._cursor is None:
            self._cursor = self._write(self._position)
        return self._cursor

    def __repr__(self) -> str:
        return f"Edge({self.node!r})"


class NodePage(Struct, Generic[N], frozen=True):
    """Edges in key order, whichever direction they were asked for in. Both flags are true statements about the instant `at`."""

    edges: list[Edge[N]]
    has_next: bool
    has_previous: bool
    at: datetime  # the instant of the whole traversal: cursors carry it

    @property
    def nodes(self) -> list[N]:
        return [edge.node for edge in self.edges]

    @property
    def start_cursor(self) -> str | None:
        return self.edges[0].cursor if self.edges else None

    @property
    def end_cursor(self) -> str | None:
        return self.edges[-1].cursor if self.edges else None


PricePage = NodePage[PriceNode]
UpcomingPage = NodePage[ChangeNode]


class PageArgs(Struct, frozen=True):
    """The `first` edges after a cursor, or the `last` ones before one. Without either, 64; at most 2,048."""

    first: int | None = None
    after: str | None = None
    last: int | None = None
    before: str | None = None

    def check(self) -> None:
        if self.first is not None and self.last is not None:
            raise InvalidField("first", "cannot go with last: ask for one end of the list")
        for name, size in (("first", self.first), ("last", self.last)):
            if size is not None and not 0 <= size <= MAX_PAGE:
                raise InvalidField(name, f"is {size}: ask for 0 to {MAX_PAGE:,}")

    @property
    def backwards(self) -> bool:
        """Whether the page is the end of the list: `last`, or only `before`."""
        return self.last is not None or (self.first is None and self.before is not None and self.after is None)

    @property
    def size(self) -> int:
        asked = self.last if self.first is None else self.first
        return DEFAULT_PAGE if asked is None else asked
