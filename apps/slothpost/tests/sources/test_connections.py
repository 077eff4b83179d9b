"""Connecting repositories and apps: tokens, webhooks and their secrets."""

from __future__ import annotations

import asyncio

import pytest
from sources.place import BASE_URL, Place

from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.identifiers import poll_key
from slothpost.model import Connection, Source
from slothpost.sources.connections import Connections
from slothpost.sources.source_settings import SourceSettings
from slothpost.sources.webhooks import REFUSED
from slothpost.standins.deliveries import app_version_state, appstore_delivery
from slothpost.standins.faults import Fault
from tickler.errors import DecryptionFailed
from tickler.table import MISSING, evolve


async def test_the_secret_of_a_webhook_is_shown_once_and_stored_encrypted(anywhere: Place) -> None:
    product = await anywhere.a_product()
    setups = await asyncio.gather(*(anywhere.connections.setup("ada", product.id, "github") for _ in range(3)))
    (secret,) = [setup.secret for setup in setups if setup.secret is not None]
    assert setups[0].url_path == f"/webhooks/github/{product.id}"
    connection = await anywhere.connection(product)
    assert secret not in repr(connection)
    assert secret not in repr(setups)
    repository = anywhere.github.add_repository("ada/teapot")
    assert (await anywhere.to_github(product, repository.ping(secret))).status == 200


async def test_a_secret_that_was_lost_is_replaced(place: Place) -> None:
    product = await place.a_product()
    old = await place.a_webhook(product)
    ping = place.github.add_repository("ada/teapot").ping
    await place.to_github(product, ping(old))
    renewed = await place.connections.new_secret("ada", product.id, "github")
    assert renewed.secret not in (None, old)
    assert not renewed.is_live, "the webhook still has the old one"
    assert await place.to_github(product, ping(old)) == REFUSED
    assert (await place.to_github(product, ping(renewed.secret or ""))).status == 200
    with pytest.raises(NotAllowed, match="Vercel makes the secrets"):
        await place.connections.new_secret("ada", product.id, "vercel")


async def test_what_was_copied_from_the_item_of_another_product_decrypts_for_nobody(place: Place) -> None:
    mine, theirs = await place.a_product("eve"), await place.a_product("ada")
    _, _, token = await place.a_repository(theirs)
    stolen = evolve(await place.connection(theirs), product=mine.id, user="eve")
    await place.db.put(stolen)
    assert await place.poll(mine) == "stopped: slothpost cannot decrypt the token any more"
    with pytest.raises(DecryptionFailed):
        place.connections._secrets.token(stolen)
    assert token not in repr(stolen)


async def test_the_list_has_the_repositories_that_the_user_may_push_to(place: Place) -> None:
    for number in range(120):
        place.github.add_repository(f"ada/r{number:03}", private=number == 7)
    place.github.add_repository("eve/secret", private=True)
    place.github.add_repository("ada/old").archived = True
    found = await place.connections.github_repositories(f"  {place.github.issue_token('ada')}\n")
    assert len(found) == 120
    assert [choice.name for choice in found if choice.is_private] == ["ada/r007"]


async def test_a_repository_is_connected_with_its_webhook_if_the_token_may(anywhere: Place) -> None:
    product = await anywhere.a_product()
    repository = anywhere.github.add_repository("ada/teapot", private=True)
    token = anywhere.github.issue_token("ada")
    setup = await anywhere.connections.connect_github("ada", product.id, token, "ada/teapot")
    assert (setup.name, setup.is_private, setup.secret, setup.has_own_webhook) == ("ada/teapot", True, None, True)
    (hook,) = repository.hooks.values()
    assert hook["config"]["url"] == f"{BASE_URL}/webhooks/github/{product.id}"
    assert hook["events"] == ["push", "pull_request", "release", "star"]
    assert (await anywhere.to_github(product, repository.ping(hook["config"]["secret"]))).status == 200
    connection = await anywhere.connection(product)
    assert token not in repr(connection)
    assert await anywhere.t.schedules.get("ada", poll_key(product.id, "github")) is not None
    again = await anywhere.connections.connect_github("ada", product.id, token, "ada/teapot")
    assert (len(repository.hooks), again.has_own_webhook) == (1, True), "it is not created twice"
    repository.hooks.clear()  # somebody deletes it
    await anywhere.connections.connect_github("ada", product.id, token, "ada/teapot")
    assert len(repository.hooks) == 1
    await anywhere.connections.disconnect("ada", product.id, "github")
    assert not repository.hooks
    assert await anywhere.t.schedules.get("ada", poll_key(product.id, "github")) is None
    assert await anywhere.connections.list("ada", product.id) == []


async def test_the_webhook_of_a_former_repository_is_deleted(place: Place) -> None:
    product, token = await place.a_product(), place.github.issue_token("ada")
    first, second = place.github.add_repository("ada/teapot"), place.github.add_repository("ada/kettle")
    for repository in (first, second):
        await place.connections.connect_github("ada", product.id, token, repository.name)
    assert (len(first.hooks), len(second.hooks)) == (0, 1)
    assert (await place.connections.list("ada", product.id))[0].has_own_webhook


async def test_a_token_that_may_not_create_webhooks_leaves_it_to_the_user(place: Place) -> None:
    product = await place.a_product()
    repository, secret, _ = await place.a_repository(product)
    assert not repository.hooks
    assert (await place.to_github(product, repository.ping(secret))).status == 200


async def test_an_installation_without_https_leaves_it_to_the_user(place: Place) -> None:
    product = await place.a_product()
    repository = place.github.add_repository("ada/teapot")
    settings = SourceSettings(github_api_url=place.github.url)
    connections = Connections(place.t, place.db, settings, base_url="http://127.0.0.1:8322")
    setup = await connections.connect_github("ada", product.id, place.github.issue_token("ada"), "ada/teapot")
    assert setup.secret is not None
    assert not repository.hooks


async def test_a_webhook_that_was_set_up_first_keeps_its_secret_and_stays_live(place: Place) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product)
    repository = place.github.add_repository("ada/teapot")
    await place.to_github(product, repository.ping(secret))
    token = place.github.issue_token("ada", frozenset({"contents"}))
    setup = await place.connections.connect_github("ada", product.id, token, "ada/teapot")
    assert (setup.secret, setup.is_live) == (None, True)
    assert (await place.to_github(product, repository.ping(secret))).status == 200


async def test_another_repository_takes_the_place_of_the_first(place: Place) -> None:
    product = await place.a_product()
    first, secret, token = await place.a_repository(product)
    await place.to_github(product, first.ping(secret))
    await place.work()
    second = place.github.add_repository("ada/kettle")
    setup = await place.connections.connect_github("ada", product.id, token, "ada/kettle")
    assert (setup.name, setup.is_live, setup.polled_at) == ("ada/kettle", False, None)
    assert (await place.to_github(product, first.pushed(secret, "feat: Not any more"))).reason.startswith("ignored")
    assert (await place.to_github(product, second.pushed(secret, "feat: Boil water"))).reason == "accepted"


@pytest.mark.parametrize(
    ("repository", "why"),
    [
        ("eve/public", "you may not push to eve/public"),
        ("eve/secret", "GitHub does not find it"),
        ("ada/nothing", "GitHub does not find it"),
        ("ada/..", "is not a repository"),
        ("../user", "is not a repository"),
        ("ada/teapot/hooks", "is not a repository"),
        ("ada/teapot?x=1", "is not a repository"),
        ("", "is not a repository"),
    ],
)
async def test_only_a_repository_of_ones_own_can_be_chosen(place: Place, repository: str, why: str) -> None:
    place.github.add_repository("eve/public")
    place.github.add_repository("eve/secret", private=True)
    product = await place.a_product()
    with pytest.raises(InvalidField, match=why) as refused:
        await place.connections.connect_github("ada", product.id, place.github.issue_token("ada"), repository)
    assert refused.value.field == "repository"
    assert await place.db.get(Connection.key.id(product.id, "github")) is None


@pytest.mark.parametrize("token", ["wrong", "", "two words", "new\nline", "ü", "x" * 300])
async def test_a_token_that_is_none_is_refused(place: Place, token: str) -> None:
    product = await place.a_product()
    with pytest.raises(InvalidField) as refused:
        await place.connections.connect_github("ada", product.id, token, "ada/teapot")
    assert refused.value.field == "token"
    with pytest.raises(InvalidField):
        await place.connections.github_repositories(token)


async def test_github_being_away_is_said_so(place: Place) -> None:
    place.github.faults.add(Fault(kind="drop"), 2, on="/user/repos")  # aiohttp tries a second time
    with pytest.raises(NotAllowed, match="GitHub could not be reached: try again in a moment"):
        await place.connections.github_repositories(place.github.issue_token("ada"))
    place.github.faults.limit(on="/user/repos")
    with pytest.raises(NotAllowed, match="GitHub asks to wait: API rate limit exceeded"):
        await place.connections.github_repositories(place.github.issue_token("ada"))


async def test_an_app_is_connected_by_its_webhook_and_by_the_lookup(place: Place) -> None:
    product = await place.a_product()
    place.store.release(42, "1.0", name="Teapot for iPad", country="de")
    setup = await place.connections.connect_appstore("ada", product.id, "id42", "DE")
    assert (setup.name, setup.external_id, setup.is_polled) == ("Teapot for iPad", "42", True)
    assert setup.secret is not None
    data = app_version_state("i1", "IN_REVIEW", at=place.now())
    assert (await place.to_appstore(product, appstore_delivery(setup.secret, data))).reason == "accepted"
    assert await place.t.schedules.get("ada", poll_key(product.id, "appstore")) is not None


async def test_an_app_without_an_id_or_not_out_yet_is_connected_too(place: Place) -> None:
    product, other = await place.a_product(), await place.a_product()
    unnamed = await place.connections.connect_appstore("ada", product.id)
    assert (unnamed.is_polled, unnamed.secret is not None) == (False, True)
    coming = await place.connections.connect_appstore("ada", other.id, "43")
    assert (coming.name, coming.is_polled) == (None, True)


@pytest.mark.parametrize(("app", "country"), [("teapot", "us"), ("", "us"), ("4" * 30, "us"), ("42", "usa"), ("42", "1")])
async def test_an_app_that_is_none_is_refused(place: Place, app: str, country: str) -> None:
    product = await place.a_product()
    with pytest.raises(InvalidField):
        await place.connections.connect_appstore("ada", product.id, app, country)


@pytest.mark.parametrize("source", ["github", "appstore", "vercel"])
async def test_what_belongs_to_others_is_not_found(place: Place, source: Source) -> None:
    product = await place.a_product("ada")
    await place.a_user("eve")
    token = place.github.issue_token("eve")
    place.github.add_repository("eve/teapot")
    attempts = [
        place.connections.setup("eve", product.id, source),
        place.connections.list("eve", product.id),
        place.connections.disconnect("eve", product.id, source),
        place.connections.connect_github("eve", product.id, token, "eve/teapot"),
        place.connections.connect_appstore("eve", product.id, "42"),
    ]
    if source != "vercel":
        attempts.append(place.connections.new_secret("eve", product.id, source))
    for attempt in attempts:
        with pytest.raises(NotFound):
            await attempt
    assert await place.connections.list("ada", product.id) == []
    with pytest.raises(NotFound):
        await place.activities.recent("eve", product.id)


async def test_disconnecting_what_is_not_connected_does_nothing(place: Place) -> None:
    product = await place.a_product()
    await place.connections.disconnect("ada", product.id, "github")
    assert (await place.db.get(product.key)) == product


async def test_disconnecting_goes_on_when_github_is_away(place: Place) -> None:
    product = await place.a_product()
    place.github.add_repository("ada/teapot")
    await place.connections.connect_github("ada", product.id, place.github.issue_token("ada"), "ada/teapot")
    hook = (await place.connection(product)).hook
    assert hook is not MISSING
    place.github.faults.add(Fault(kind="drop"), 2, on=hook)
    await place.connections.disconnect("ada", product.id, "github")
    assert await place.connections.list("ada", product.id) == []
