"""*Changes*: the change sets that are open, by what has to be done about them, or those that ended in one state."""

from __future__ import annotations

from litestar import Response, get

from pricebook.model import ENDED_STATES, ChangeSet
from pricebook.pages.rendering import clock_of, page, state_of
from pricebook.pages.requests import asked, caller_of, page_args, page_links
from pricebook.web.context import HttpRequest, book_of

LISTED = 100
OPEN = {
    "submitted": "Waiting for approval",
    "approving": "Being approved or taken back",
    "approved": "Approved",
    "effective": "Effective, not settled everywhere",
    "draft": "Drafts",
}
ENDED = {"settled": "Settled", "cancelled": "Cancelled", "superseded": "Rolled back"}


@get("/change-sets")
async def change_sets(request: HttpRequest) -> Response[str]:
    listed, caller, args = book_of(request).change_sets, caller_of(request), page_args(request, LISTED)
    state = asked(request, "state")
    if (ended := ENDED_STATES.get(state)) is not None:
        found = await listed.ended(caller, ended, args)
        groups = {state: found.nodes}
    else:
        found = await listed.open(caller, args)
        groups = _by_state(request, found.nodes)
    return await page(
        request,
        "change_sets",
        "changes",
        open=OPEN,
        ended=ENDED,
        groups=groups,
        chosen=state if state in groups else "",
        is_over=ended is not None,
        links=page_links(found, "/change-sets", state=state),
    )


HANDLERS = [change_sets]


def _by_state(request: HttpRequest, found: list[ChangeSet]) -> dict[str, list[ChangeSet]]:
    clock = clock_of(request)
    groups: dict[str, list[ChangeSet]] = {name: [] for name in OPEN}
    for each in found:
        state = state_of(clock, each)
        groups["approving" if state == "withdrawing" else state].append(each)
    return groups
