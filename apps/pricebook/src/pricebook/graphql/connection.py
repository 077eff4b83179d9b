"""Relay connections over keyset pages. The cursors are those of the pages; no offset is ever counted."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

import strawberry
from msgspec import Struct

from pricebook.editions.pages import Edge as PageEdge
from pricebook.editions.pages import NodePage

N = TypeVar("N")
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


class ConnectionView(Struct, Generic[N], frozen=True):
    """A page as the fields of `Connection` read it."""

    page_info: NodePage[N]

    @property
    def edges(self) -> list[PageEdge[N]]:
        return self.page_info.edges

    @property
    def nodes(self) -> list[N]:
        return self.page_info.nodes


def connection_of(_: type[T], page: NodePage[Any]) -> Connection[T]:
    """Return a page as a connection of a type of the schema, which only says which attributes of its nodes are read."""
    return cast("Connection[T]", ConnectionView(page))
