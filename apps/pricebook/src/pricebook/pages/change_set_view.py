"""What the page of a change set shows: how far it is, its report, its prices, and what the reader may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar import Response

from pricebook.change_sets import Report
from pricebook.editions.pages import PageArgs
from pricebook.model import ALL, ChangeSet
from pricebook.pages.change_set_actions import actions_of
from pricebook.pages.change_set_lines import LineValues, empty_line, key_text
from pricebook.pages.environment import in_path
from pricebook.pages.rendering import page
from pricebook.pages.report_view import groups_of, moves_of, shares_of
from pricebook.pages.requests import asked, caller_of, page_args, page_links
from pricebook.web.context import HttpRequest, book_of

LINES = 50
STORES = 50
BUSY = ("approving", "withdrawing")
REPORTED = ("draft", "submitted")
MAX_REPORTED = 2_000  # lines of which the page makes a report without being asked to


async def change_set_page(
    request: HttpRequest,
    id: str,
    status: int = 200,
    *,
    problem: str = "",
    values: LineValues | None = None,
    errors: Mapping[str, str] | None = None,
) -> Response[str]:
    book, caller = book_of(request), caller_of(request)
    found = await book.change_sets.get(caller, id)
    actions = actions_of(found, caller, four_eyes=book.settings.four_eyes)
    report = await book.change_sets.report(caller, id) if _wants_report(request, found) else None
    lines = await book.change_sets.lines(caller, id, page_args(request, LINES))
    stores = None if found.state in REPORTED else await book.change_sets.stores(caller, id, PageArgs(first=STORES))
    path = f"/change-sets/{in_path(id)}"
    return await page(
        request, "change_set", "changes", status,
        found=found, actions=actions, report=report, path=path, **({} if report is None else _drawn(report)),
        progress=await book.change_sets.progress(caller, id), is_busy=found.state in BUSY,
        lines=lines, line_keys=[key_text(line.price_key()) for line in lines.nodes], stores=stores,
        values=values or empty_line("EUR"), errors=errors or {}, problem=problem, channels=(ALL, "WEB"),
        links=page_links(lines, path),
    )  # fmt: skip


def _wants_report(request: HttpRequest, found: ChangeSet) -> bool:
    if found.state not in REPORTED:
        return False
    return bool(asked(request, "report")) or (found.state == "submitted" and found.lines <= MAX_REPORTED)


def _drawn(report: Report) -> dict[str, Any]:
    return {"shares": shares_of(report), "moves": moves_of(report), "groups": groups_of(report)}
