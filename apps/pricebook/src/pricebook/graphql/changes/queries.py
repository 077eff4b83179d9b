"""The queries of change sets."""

from __future__ import annotations

import strawberry

from pricebook.access.filtered_pages import filtered_page
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.graphql.changes.states import OpenChangeSetState
from pricebook.graphql.changes.types import ChangeSet, change_set
from pricebook.graphql.connection import Connection, connection_of
from pricebook.graphql.context import Info
from pricebook.model import ChangeSet as ChangeSetItem


async def _change_set(info: Info, id: strawberry.ID) -> ChangeSet | None:
    context = info.context
    return change_set(await context.services.change_sets.get(context.caller, id))


async def _change_sets(
    info: Info,
    state: OpenChangeSetState | None = None,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Connection[ChangeSet] | None:
    context = info.context

    async def read(page: PageArgs) -> NodePage[ChangeSetItem]:
        return await context.services.change_sets.open(context.caller, page)

    page = PageArgs(first, after, last, before)
    if state is None:
        return connection_of(ChangeSet, await read(page), change_set)
    wanted = state.value
    return connection_of(ChangeSet, await filtered_page(read, page, lambda item: item.state == wanted), change_set)


@strawberry.type
class ChangeSetQueries:
    change_set: ChangeSet | None = strawberry.field(resolver=_change_set, description="A change set, also one that is over.")
    change_sets: Connection[ChangeSet] | None = strawberry.field(
        resolver=_change_sets, description="The change sets that are not over, the newest first."
    )
