"""Every method of every service, asked by one user for what is another's: nothing is found, shown or changed.

test_strangers.py does the same with every route. A method that is new is asked here as soon as it exists.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from installation import ZONE, Installation
from slothpost.accounts.connections import AccountConnections
from slothpost.errors import NotFound
from slothpost.model import Account, Activity, Channel, Connection, Notice, Post, Product, Slot, User
from slothpost.people.products import ProductChanges

MARK = "Zanzibar"  # in everything that the victim has
NOTHING = "nothing to do"  # what handlers say, in the history of their fire

# The services, and what their parameter `id` names.
SERVICES = {
    "review": "post", "drafts": "post", "publisher": "post", "undecided": "post", "accounts": "account", "tokens": "account",
    "products": "product", "product_deletion": "product", "plans": "product", "connections": "product", "activities": "product",
    "polling": "product",
}  # fmt: skip
# They have no user, or are of the user who asks alone; the tests of their packages have them.
OF_ONESELF = {
    ("review", "queue"), ("review", "count"), ("products", "create"), ("products", "list"), ("accounts", "list"),
    ("plans", "pause_user"), ("plans", "rearrange_all"), ("activities", "unrouted"), ("connections", "github_repositories"),
    ("connections", "vercel_projects"), ("connections", "vercel_authorized"), ("accounts", "finish"), ("accounts", "add"),
    ("tokens", "get"), ("tokens", "mark_broken"),
}  # fmt: skip


class Victim(NamedTuple):
    ids: Mapping[str, str]


@pytest.fixture
async def victim(here: Installation) -> Victim:
    product = await here.a_channel({"tue": "09:00"}, description=MARK)
    (account,) = await here.app.accounts.list("ada")
    post = await here.a_draft(product, f"{MARK} is out")
    await here.an_activity(product, f"{MARK} has an airport")
    await here.app.connections.setup("ada", product.id, "github")
    await here.a_user("eve")
    return Victim({"product": product.id, "post": post.id, "account": account.id})


def methods() -> Iterator[tuple[str, str]]:
    """Yield service and name of every method that takes a user."""
    from slothpost.app import Slothpost  # its annotations are the services

    hints = inspect.get_annotations(Slothpost, eval_str=True)
    for service in SERVICES:
        for name, _ in inspect.getmembers(hints[service], inspect.iscoroutinefunction):
            if not name.startswith("_") and (service, name) not in OF_ONESELF:
                yield service, name


def arguments(here: Installation, victim: Victim, service: str, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """Return arguments that are right, but for whose the ids are."""
    known: dict[str, Any] = {
        "version": 1,
        "user": "eve", "by": "Eve", "id": victim.ids[SERVICES[service]], "product": victim.ids["product"],
        "product_id": victim.ids["product"], "account_id": victim.ids["account"], "name": "x", "channel": "x", "network": "x",
        "source": "github", "text": "mine", "url": "https://x.example/eve/status/1", "note": "", "hint": "", "tag": "mine",
        "slot_at": here.now() + timedelta(days=1), "until": here.now() + timedelta(hours=1), "paused": True, "zone": ZONE,
        "days": 1 if service == "review" else {"mon": "08:00"}, "changes": ProductChanges(name="mine"), "operator": "eve",
        "decide": lambda stored: stored, "token": "github_pat_1", "repository": "ada/teapot", "project_id": "prj_1",
        "secret": "mine", "app_id": None, "country": "us", "redirect_uri": "https://a.example/back", "first": 10, "after": None,
    }  # fmt: skip
    names = [name for name in parameters if name != "self"]
    assert set(names) <= known.keys(), f"{service}: what is {set(names) - known.keys()} here? Add it to the arguments"
    return {name: known[name] for name in names}


async def snapshot(here: Installation, victim: Victim) -> list[Any]:
    """Return everything that the victim has, and when it is due."""
    product, db = victim.ids["product"], here.app.db
    selections: list[Any] = [
        *(kind.key("ada") for kind in (User, Account, Post, Notice)),
        *(kind.key(product) for kind in (Product, Channel, Connection, Activity, Slot)),
    ]
    items = [item for selection in selections for item in [each async for each in db.iterate(selection)]]
    return [*items, *(await here.app.t.schedules.list(owner="ada")).items]


async def test_no_method_finds_shows_or_changes_what_is_another_users(here: Installation, victim: Victim) -> None:
    before, asked = await snapshot(here, victim), 0
    for service, name in methods():
        method = getattr(getattr(here.app, service), name)
        given = arguments(here, victim, service, inspect.signature(method).parameters)
        assert "user" in given or "operator" in given, f"{service}.{name} takes no user: whose is it?"
        with suppress(NotFound):
            result = await method(**given)
            assert isinstance(result, str), (service, name, result)
            assert result.startswith(NOTHING), (service, name, result)
            assert MARK not in result, (service, name, result)
        assert await snapshot(here, victim) == before, (service, name)
        asked += 1
    assert asked >= 30, "not all methods were found"


async def test_an_account_of_another_user_is_not_chosen_for_a_channel_of_ones_own(here: Installation, victim: Victim) -> None:
    own = await here.a_product("eve")
    with pytest.raises(NotFound):
        await here.app.accounts.use("eve", own.id, "x", victim.ids["account"])
    with pytest.raises(NotFound):
        await here.app.accounts.authorize_url("eve", "x", redirect_uri="https://a.example", product=victim.ids["product"])
    assert isinstance(here.app.accounts, AccountConnections)
    assert await here.app.accounts.list("eve") == []


async def test_the_same_account_of_two_users_has_tokens_of_each(here: Installation) -> None:
    await here.a_user()
    await here.a_user("eve")
    first = await here.app.accounts.add("ada", "x", here.x.issue_tokens("shared"))
    second = await here.app.accounts.add("eve", "x", here.x.issue_tokens("shared"))
    assert first.id == second.id
    await here.app.accounts.disconnect("eve", second.id)
    assert [account.id for account in await here.app.accounts.list("ada")] == [first.id]
