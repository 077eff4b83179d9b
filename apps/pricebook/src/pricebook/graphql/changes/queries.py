"""The queries of change sets."""

from __future__ import annotations

import strawberry

from pricebook.access.filtered_pages import filtered_page
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.graphql.changes.states import ChangeSetState
from pricebook.graphql.changes.types import ChangeSet, change_set
from pricebook.graphql.connection import Connection, connection_of
from pricebook.graphql.context import Info
from pricebook.model import ENDED_STATES
from pricebook.model import ChangeSet as ChangeSetItem


async def _change_set(info: Info, id: strawberry.ID) -> ChangeSet | None:
    context = info.context
    return change_set(await context.services.change_sets.get(context.caller, id))


async def _change_sets(
    info: Info,
    state: ChangeSetState | None = None,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[ChangeSet] | None:
    change_sets, caller = info.context.services.change_sets, info.context.caller

    async def read_open(page: PageArgs) -> NodePage[ChangeSetItem]:
        return await change_sets.open(caller, page)

    page = PageArgs(first, after, last, before)
    if state is None:
        found = await read_open(page)
    elif (ended := ENDED_STATES.get(state.value)) is not None:
        found = await change_sets.ended(caller, ended, page)
    else:
        found = await filtered_page(read_open, page, lambda item: item.state == state.value)
    return connection_of(ChangeSet, found, change_set)


@strawberry.type
class ChangeSetQueries:
    change_set: ChangeSet | None = strawberry.field(resolver=_change_set, description="A change set, also one that is over.")
    change_sets: Connection[ChangeSet] | None = strawberry.field(
        resolver=_change_sets,
        description="The change sets of a state, the newest first. Without a state: those that are not over.",
    )
