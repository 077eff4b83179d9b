"""What handlers of pages ask a request for: who sent it, and parts of its address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from pricebook.access.allowed_prices import AllowedPrices
from pricebook.access.caller import Caller
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.people import Person
from pricebook.web.context import HttpRequest, book_of, web_of

MAX_LENGTH = 200  # of a parameter that people type or follow; longer ones are cut off


def person_of(request: HttpRequest) -> Person:
    """Return who is signed in. Nobody is refused with 401."""
    return web_of(request).visitor(request.scope).require()


def caller_of(request: HttpRequest) -> Caller:
    return person_of(request).caller


def prices_of(request: HttpRequest) -> AllowedPrices:
    """Return the prices that the person may read."""
    return AllowedPrices(book_of(request).prices, caller_of(request))


def part(request: HttpRequest, name: str) -> str:
    """Return a part of the path by the name that the route gives it."""
    return str(request.path_params[name])


def asked(request: HttpRequest, name: str, default: str = "") -> str:
    """Return a parameter of the address, without the spaces around it."""
    return str(request.query_params.get(name, default)).strip()[:MAX_LENGTH]


def page_args(request: HttpRequest, size: int) -> PageArgs:
    """Return which page of a list the address asks for: the one after a cursor, or the one before it."""
    after, before = request.query_params.get("after"), request.query_params.get("before")
    return PageArgs(last=size, before=before) if before and not after else PageArgs(first=size, after=after)


class PageLinks(NamedTuple):
    """The addresses of the first page of a list, and of the pages around this one as far as there are any."""

    first: str
    before: str | None
    after: str | None


def page_links(found: NodePage[Any], path: str, **parameters: str | Sequence[str] | None) -> PageLinks:
    return PageLinks(
        with_parameters(path, **parameters),
        with_parameters(path, **parameters, before=found.start_cursor) if found.has_previous else None,
        with_parameters(path, **parameters, after=found.end_cursor) if found.has_next else None,
    )


def with_parameters(path: str, **parameters: str | Sequence[str] | None) -> str:
    """Return a path with parameters, of which those that are empty are left out."""
    query = urlencode({name: value for name, value in parameters.items() if value}, doseq=True)
    return f"{path}?{query}" if query else path
