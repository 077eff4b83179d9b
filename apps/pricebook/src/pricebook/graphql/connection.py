"""Relay connections over keyset pages. The cursors are those of the pages; no offset is ever counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import strawberry
from msgspec import Struct

from pricebook.editions.pages import Edge as PageEdge
from pricebook.editions.pages import NodePage

T = TypeVar("T")


@strawberry.type(description="Where a page lies in its list. Both flags are always true statements.")
class PageInfo:
    has_next: bool = strawberry.field(name="hasNextPage")
    has_previous: bool = strawberry.field(name="hasPreviousPage")
    start_cursor: str | None
    end_cursor: str | None


@strawberry.type(description="A node with its cursor.")
class Edge(Generic[T]):
    cursor: str
    node: T


@strawberry.type(description="A page of a list, in the same order whichever end it was asked from.")
class Connection(Generic[T]):
    edges: list[Edge[T]]
    nodes: list[T]
    page_info: PageInfo


class EdgeView(Struct, frozen=True):
    """An edge whose node is an object of the schema."""

    edge: PageEdge[Any]
    node: object

    @property
    def cursor(self) -> str:
        return self.edge.cursor


class ConnectionView(Struct, frozen=True):
    """A page as the fields of `Connection` read it."""

    page_info: NodePage[Any]
    edges: Sequence[PageEdge[Any] | EdgeView]

    @property
    def nodes(self) -> list[Any]:
        return [edge.node for edge in self.edges]


def connection_of(_: type[T], page: NodePage[Any], show: Callable[[Any], T] | None = None) -> Connection[T]:
    """Return a page as a connection of a type of the schema.

    The type only says which attributes of the nodes are read, unless `show` makes objects of it.
    """
    edges = page.edges if show is None else [EdgeView(edge, show(edge.node)) for edge in page.edges]
    return cast("Connection[T]", ConnectionView(page, edges))
