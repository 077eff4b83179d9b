"""What the page of a change set shows: how far it is, its report, its prices, and what the reader may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from litestar import Response

from pricebook.change_sets import Report, ReportLine
from pricebook.editions.pages import PageArgs
from pricebook.model import ALL, ChangeSet
from pricebook.pages.change_set_actions import actions_of
from pricebook.pages.change_set_lines import LineValues, empty_line, key_text
from pricebook.pages.environment import in_path
from pricebook.pages.rendering import page
from pricebook.pages.requests import asked, caller_of, page_args, with_parameters
from pricebook.web.context import HttpRequest, book_of

LINES = 50
STORES = 50
BUSY = ("approving", "withdrawing")
REPORTED = ("draft", "submitted")
MAX_REPORTED = 2_000  # lines of which the page makes a report without being asked to
LARGEST = 20


class Bar(NamedTuple):
    """A change of the report as a bar: to the left what is lowered, to the right what is raised."""

    line: ReportLine
    x: float
    width: float
    kind: str


class Share(NamedTuple):
    """A part of all lines, as a piece of one bar."""

    kind: str
    label: str
    number: int
    x: float
    width: float


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
        found=found, actions=actions, report=report, bars=_bars(report), shares=_shares(report), path=path,
        progress=await book.change_sets.progress(caller, id), is_busy=found.state in BUSY,
        lines=lines, line_keys=[key_text(line.price_key()) for line in lines.nodes], stores=stores,
        values=values or empty_line("EUR"), errors=errors or {}, problem=problem, channels=(ALL, "WEB"),
        before=with_parameters(path, before=lines.start_cursor) if lines.has_previous else None,
        after=with_parameters(path, after=lines.end_cursor) if lines.has_next else None,
    )  # fmt: skip


def _wants_report(request: HttpRequest, found: ChangeSet) -> bool:
    if found.state not in REPORTED:
        return False
    return bool(asked(request, "report")) or (found.state == "submitted" and found.lines <= MAX_REPORTED)


def _bars(report: Report | None) -> list[Bar]:
    """Return the largest moves. The longest bar is half as wide as the drawing, which is 200."""
    largest = [] if report is None else [line for line in report.largest if line.share is not None][:LARGEST]
    longest = max((abs(line.share) for line in largest if line.share), default=1.0)
    return [_bar(line, line.share or 0.0, longest) for line in largest]


def _bar(line: ReportLine, share: float, longest: float) -> Bar:
    width = round(abs(share) / longest * 100, 1)
    return Bar(line, round(100 - width, 1) if share < 0 else 100, width, "down" if share < 0 else "up")


def _shares(report: Report | None) -> Sequence[Share]:
    """Return what the lines do, as the pieces of a bar that is 1000 wide."""
    if report is None or not report.lines:
        return ()
    parts = (("up", "raised", report.raised), ("down", "lowered", report.lowered), ("new", "added", report.added),
             ("none", "removed", report.removed), ("same", "unchanged", report.unchanged))  # fmt: skip
    total = sum(number for _, _, number in parts) or 1
    found, x = [], 0.0
    for kind, label, number in parts:
        width = 1000 * number / total
        found.append(Share(kind, label, number, round(x, 1), round(width, 1)))
        x += width
    return found
