"""The mutations of change sets. They are done one after the other; one that fails is null, and leaves the others as they are."""

from __future__ import annotations

import strawberry

from pricebook.access.caller import Caller
from pricebook.change_sets import ChangeSets
from pricebook.graphql.changes import inputs
from pricebook.graphql.changes.types import ChangeSet, change_set
from pricebook.graphql.context import Info
from pricebook.model import ChangeSet as ChangeSetItem


@strawberry.type(description="The change set as it is now.")
class PriceChangePayload:
    change_set: ChangeSet


@strawberry.type(description="The change set as it is now, and how many of its prices were written or removed.")
class PricesPayload:
    change_set: ChangeSet
    count: int


def _begin(info: Info) -> tuple[ChangeSets, Caller, str]:
    """Return what a mutation needs. What was read before it is forgotten."""
    context = info.context
    context.forget()
    return context.services.change_sets, context.caller, context.request


def _shown(item: ChangeSetItem) -> PriceChangePayload:
    return PriceChangePayload(change_set=change_set(item))


async def _create(info: Info, input: inputs.CreatePriceChangeInput) -> PriceChangePayload | None:
    sets, caller, request = _begin(info)
    return _shown(await sets.create(caller, input.change(), request=request))


async def _edit(info: Info, input: inputs.EditPriceChangeInput) -> PriceChangePayload | None:
    sets, caller, request = _begin(info)
    return _shown(await sets.edit(caller, input.id, input.change(), rev=input.rev, request=request))


async def _add(info: Info, input: inputs.AddPricesInput) -> PricesPayload | None:
    sets, caller, request = _begin(info)
    caller.require("read")  # before anything is written, since the payload shows the change set
    lines = inputs.read_all(input.prices, inputs.PriceInput.line)
    count = await sets.put_lines(caller, input.id, lines, request=request)
    return PricesPayload(change_set=change_set(await sets.get(caller, input.id)), count=count)


async def _remove(info: Info, input: inputs.RemovePricesInput) -> PricesPayload | None:
    sets, caller, request = _begin(info)
    caller.require("read")
    keys = inputs.read_all(input.prices, inputs.PriceKeyInput.key)
    count = await sets.remove_lines(caller, input.id, keys, request=request)
    return PricesPayload(change_set=change_set(await sets.get(caller, input.id)), count=count)


async def _submit(info: Info, input: inputs.SubmitPriceChangeInput) -> PriceChangePayload | None:
    sets, caller, request = _begin(info)
    return _shown(await sets.submit(caller, input.id, rev=input.rev, request=request))


async def _send_back(info: Info, input: inputs.DecidePriceChangeInput) -> PriceChangePayload | None:
    sets, caller, request = _begin(info)
    return _shown(await sets.send_back(caller, input.id, rev=input.rev, reason=input.reason, request=request))


async def _approve(info: Info, input: inputs.ApprovePriceChangeInput) -> PriceChangePayload | None:
    sets, caller, request = _begin(info)
    return _shown(await sets.approve(caller, input.id, rev=input.rev, reason=input.reason, request=request))


async def _unapprove(info: Info, input: inputs.DecidePriceChangeInput) -> PriceChangePayload | None:
    sets, caller, request = _begin(info)
    return _shown(await sets.unapprove(caller, input.id, rev=input.rev, reason=input.reason, request=request))


async def _cancel(info: Info, input: inputs.DecidePriceChangeInput) -> PriceChangePayload | None:
    sets, caller, request = _begin(info)
    return _shown(await sets.cancel(caller, input.id, rev=input.rev, reason=input.reason, request=request))


async def _roll_back(info: Info, input: inputs.RollbackPriceChangeInput) -> PriceChangePayload | None:
    sets, caller, request = _begin(info)
    return _shown(await sets.roll_back(caller, input.id, reason=input.reason, request=request))


async def _change_now(info: Info, input: inputs.ChangePricesNowInput) -> PriceChangePayload | None:
    sets, caller, request = _begin(info)
    lines = inputs.read_all(input.prices, inputs.PriceInput.line)
    return _shown(await sets.change_now(caller, lines, title=input.title, reason=input.reason, request=request))


@strawberry.type
class Mutation:
    create_price_change: PriceChangePayload | None = strawberry.mutation(
        resolver=_create, description="Create a change set, which is a draft without prices. Needs the role edit."
    )
    edit_price_change: PriceChangePayload | None = strawberry.mutation(
        resolver=_edit, description="Change what a draft says about itself. Needs the role edit."
    )
    add_prices: PricesPayload | None = strawberry.mutation(
        resolver=_add, description="Put prices into a draft. Needs the roles read and edit."
    )
    remove_prices: PricesPayload | None = strawberry.mutation(
        resolver=_remove, description="Take prices out of a draft. Needs the roles read and edit."
    )
    submit_price_change: PriceChangePayload | None = strawberry.mutation(
        resolver=_submit, description="Submit a draft for approval. Needs the role edit."
    )
    send_back_price_change: PriceChangePayload | None = strawberry.mutation(
        resolver=_send_back, description="Make a submitted change set a draft again. Needs the role approve."
    )
    approve_price_change: PriceChangePayload | None = strawberry.mutation(
        resolver=_approve,
        description="Approve a submitted change set, whose prices are staged, then sealed in all stores. Needs the role approve.",
    )
    unapprove_price_change: PriceChangePayload | None = strawberry.mutation(
        resolver=_unapprove, description="Make an approved change set a submitted one again. Needs the role approve."
    )
    cancel_price_change: PriceChangePayload | None = strawberry.mutation(
        resolver=_cancel, description="Cancel a change set for good. Needs the role edit; approve, once it is approved."
    )
    rollback_price_change: PriceChangePayload | None = strawberry.mutation(
        resolver=_roll_back,
        description="Submit a new change set that takes another one back in each of its stores. Needs the role approve.",
    )
    change_prices_now: PriceChangePayload | None = strawberry.mutation(
        resolver=_change_now,
        description="Create, submit and approve a change set at once, in an emergency. Needs the roles edit and approve.",
    )
