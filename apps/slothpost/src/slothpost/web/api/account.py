"""`/api/account`: the user whose token it is."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from slothpost.model import User
from slothpost.people.users import UserChanges
from slothpost.web.api.operation import Call, NoBody, NoQuery, operation

_Zone = Annotated[str, Meta(description="A time zone, such as Europe/Paris.", extra_json_schema={"format": "time-zone"})]


class AccountBody(msgspec.Struct, frozen=True):
    """A user. `paused`: nothing is drafted or published for any product."""

    id: str
    name: str
    zone: str
    paused: bool


class AccountPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to change. The zone is that of new channels and of what is shown; those that exist keep theirs."""

    name: str | UnsetType = UNSET
    zone: _Zone | UnsetType = UNSET


@operation("GET", "/account")
async def get_account(call: Call[NoQuery, NoBody]) -> AccountBody:
    """Get the user whose token this is."""
    return _account(call.user)


@operation("PATCH", "/account")
async def update_account(call: Call[NoQuery, AccountPatch]) -> AccountBody:
    """Change the name or the zone."""
    changes = UserChanges(**msgspec.to_builtins(call.body))
    user, _ = await call.slothpost.users.update(call.user.id, changes)
    return _account(user)


@operation("POST", "/account/pause")
async def pause_account(call: Call[NoQuery, NoBody]) -> AccountBody:
    """Pause all products: nothing is drafted or published until they are resumed."""
    return await _paused(call, paused=True)


@operation("POST", "/account/resume")
async def resume_account(call: Call[NoQuery, NoBody]) -> AccountBody:
    """Resume all products that are not paused themselves."""
    return await _paused(call, paused=False)


OPERATIONS = (get_account, update_account, pause_account, resume_account)


async def _paused(call: Call[NoQuery, NoBody], *, paused: bool) -> AccountBody:
    await call.slothpost.plans.pause_user(call.user.id, paused=paused)
    changed = await call.slothpost.users.get(call.user.id)
    return _account(changed or call.user)


def _account(user: User) -> AccountBody:
    return AccountBody(id=user.id, name=user.name, zone=user.zone, paused=user.paused)
