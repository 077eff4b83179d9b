"""*Audit*: who decided what, of a day, a store, a change set, a person or a product; and the prices of an edition."""

from __future__ import annotations

from datetime import UTC, date
from typing import Any

from litestar import Response, get

from pricebook.errors import InvalidField
from pricebook.model import PRICE_TYPES
from pricebook.pages.change_titles import titles_of_ids
from pricebook.pages.environment import in_path
from pricebook.pages.rendering import page
from pricebook.pages.requests import asked, caller_of, page_args, page_links, part
from pricebook.web.context import HttpRequest, book_of

LISTED = 50
FIELDS = ("change_set", "store", "product", "actor", "day")


@get("/audit")
async def audit(request: HttpRequest) -> Response[str]:
    values = {name: asked(request, name) for name in (*FIELDS, "type")}
    values["type"] = values["type"] if values["type"] in PRICE_TYPES else "Base"
    of = next((name for name in FIELDS if values[name]), "day")
    if of == "day":
        values["day"] = values["day"] or book_of(request).now().astimezone(UTC).date().isoformat()
    found = await _page_of(request, of, values)
    chosen = {of: values[of], "type": values["type"] if of == "product" and values["type"] != "Base" else ""}
    named = [each.change_set for each in found.nodes if each.change_set]
    return await page(
        request,
        "audit",
        "audit",
        of=of,
        values=values,
        nodes=found.nodes,
        titles=await titles_of_ids(request, named),
        links=page_links(found, "/audit", **chosen),
    )


@get("/audit/{store:str}/{edition:int}")
async def edition(request: HttpRequest) -> Response[str]:
    """Show the prices that an edition of a store was to change."""
    store, number = part(request, "store"), int(request.path_params["edition"])
    found = await book_of(request).audit.prices_of(caller_of(request), store, number, page_args(request, LISTED))
    path = f"/audit/{in_path(store)}/{number}"
    return await page(
        request,
        "edition",
        "audit",
        store=store,
        number=number,
        prices=found.nodes,
        titles=await titles_of_ids(request, [each.change_set for each in found.nodes[:1]]),
        links=page_links(found, path),
    )


HANDLERS = [audit, edition]


async def _page_of(request: HttpRequest, of: str, values: dict[str, str]) -> Any:
    trail, caller, args = book_of(request).audit, caller_of(request), page_args(request, LISTED)
    match of:
        case "change_set":
            return await trail.of_change_set(caller, values[of], args)
        case "store":
            return await trail.of_store(caller, values[of], args)
        case "product":
            return await trail.of_product(caller, values["type"], values[of], args)
        case "actor":
            return await trail.of_actor(caller, values[of], args)
    return await trail.of_day(caller, _day(values["day"]), args)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidField("day", f"{text[:20]!r} is not a day: write one such as 2026-12-01") from None
