"""Deployments reach the product that has their project, and nobody else learns of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import pytest
from sources.place import Place, open_place

from slothpost.errors import NotFound
from slothpost.model import Connection, Product, VercelClaim, Voice, slothpost
from slothpost.sources.signatures import vercel_signature
from slothpost.sources.source_settings import SourceSettings
from slothpost.sources.vercel_routing import VercelRouting
from slothpost.sources.webhooks import REFUSED, Webhooks
from slothpost.standins.deliveries import Signed, vercel_delivery
from slothpost.standins.vercel import LocalProject
from tickler import ManualClock
from tickler.table import MISSING, OpenTable
from tickler.testing import ChaosEngine

OWN_SECRET = "the secret of an account's own webhook"


async def deployed(place: Place, project: LocalProject, message: str = "feat: Brew tea", **options: Any) -> str:
    """Deploy a project, let Vercel deliver that, and let it be worked on. Returns the answer's reason."""
    answer = await place.to_vercel(place.vercel.delivery(project, place.vercel.deploy(project, message), **options))
    await place.work()
    return answer.reason


def forged(place: Place, project: LocalProject, message: str) -> Signed:
    """Return what somebody who knows a secret of their own writes: Vercel knows nothing of it."""
    deployment = place.vercel.deploy(project, message)
    project.deployments.remove(deployment)
    return place.vercel.delivery(project, deployment, secret=OWN_SECRET)


async def test_a_deployment_is_routed_by_the_id_of_its_project(anywhere: Place) -> None:
    ada, eve = await anywhere.a_product("ada"), await anywhere.a_product("eve")
    project = await anywhere.a_project(ada, "team_ada", name="site")
    namesake = await anywhere.a_project(eve, "team_eve", name="site")
    assert await deployed(anywhere, project, "feat: Brew tea") == "accepted"
    assert await deployed(anywhere, namesake, "feat: Spy on tea") == "accepted"
    assert [activity.title for activity in await anywhere.activity(ada)] == ["Brew tea"]
    assert [activity.title for activity in await anywhere.activity(eve)] == ["Spy on tea"]
    assert (await anywhere.connection(ada, "vercel")).live_at is not MISSING


async def test_the_older_shape_of_a_payload_is_routed_too(place: Place) -> None:
    product = await place.a_product()
    project = await place.a_project(product, "team_ada")
    payload = {
        "projectId": project.id,
        "deploymentId": "dpl_1",
        "name": "teapot",
        "url": "teapot-1.vercel.app",
        "target": "production",
    }
    signed = vercel_delivery(place.vercel.client_secret, "deployment-ready", payload, at=place.now())
    assert (await place.to_vercel(signed)).reason == "accepted"
    await place.work()
    (activity,) = await place.activity(product)
    assert (activity.id, activity.url) == ("deployment:dpl_1", "https://teapot-1.vercel.app")


async def test_a_delivery_that_comes_again_is_accepted_once(place: Place) -> None:
    product = await place.a_product()
    project = await place.a_project(product)
    signed = place.vercel.delivery(project, place.vercel.deploy(project, "feat: Brew tea"))
    assert [(await place.to_vercel(signed)).status for _ in range(3)] == [202, 200, 200]
    await place.work()
    assert len(await place.activity(product)) == 1


async def test_a_preview_is_ignored_and_shown_so(place: Place) -> None:
    product = await place.a_product()
    project = await place.a_project(product)
    preview = place.vercel.deploy(project, "feat: Try tea", target=None)
    signed = place.vercel.delivery(project, preview, "deployment.succeeded")
    assert (await place.to_vercel(signed)).reason == "ignored: its target is preview"
    assert (await place.connection(product, "vercel")).last_ignored == "its target is preview"


async def test_a_wrong_signature_is_refused(place: Place) -> None:
    product = await place.a_product()
    project = await place.a_project(product)
    signed = place.vercel.delivery(project, place.vercel.deploy(project, "feat: Forge tea"), secret="guessed")
    assert await place.to_vercel(signed) == REFUSED
    assert await place.webhooks.vercel({}, signed.body) == REFUSED
    assert await place.webhooks.vercel({"x-vercel-signature": "é" * 40}, signed.body) == REFUSED


async def test_without_an_integration_every_delivery_is_refused(place: Place) -> None:
    webhooks = Webhooks(place.t, place.db, SourceSettings())
    for secret in ("", "anything"):
        signed = vercel_delivery(secret, "deployment.promoted", {}, at=place.now())
        assert await webhooks.vercel(signed.headers, signed.body) == REFUSED


async def test_both_client_secrets_are_accepted_while_one_is_replaced(place: Place) -> None:
    webhooks = Webhooks(place.t, place.db, SourceSettings(vercel_client_secret="new", vercel_old_client_secret="old"))
    for secret, status in (("new", HTTPStatus.OK), ("old", HTTPStatus.OK), ("older", HTTPStatus.UNAUTHORIZED)):
        signed = vercel_delivery(secret, "test-webhook", {}, at=place.now())
        assert (await webhooks.vercel(signed.headers, signed.body)).status == status


async def test_a_tenant_who_knows_their_own_secret_cannot_inject_deployments_for_another_tenant(anywhere: Place) -> None:
    victim, attacker = await anywhere.a_product("ada"), await anywhere.a_product("eve")
    target = await anywhere.a_project(victim, "team_ada")
    own = await anywhere.a_project(attacker, "team_eve", name="own")
    await anywhere.connections.use_vercel_secret("eve", attacker.id, OWN_SECRET)
    lie = forged(anywhere, target, "feat: Buy my coins")

    assert await anywhere.to_vercel(lie) == REFUSED, "it is not the integration's secret"
    assert await anywhere.to_vercel(lie, victim.id) == REFUSED, "nor that of the other product"
    answer = await anywhere.to_vercel(lie, attacker.id)
    assert answer.reason == "ignored: it is about another project than the one that is connected"
    await anywhere.work()
    assert not await anywhere.activity(victim)
    assert not await anywhere.activity(attacker)

    genuine = anywhere.vercel.delivery(own, anywhere.vercel.deploy(own, "feat: Brew tea"), secret=OWN_SECRET)
    assert (await anywhere.to_vercel(genuine, attacker.id)).reason == "accepted"
    await anywhere.work()
    assert [activity.title for activity in await anywhere.activity(attacker)] == ["Brew tea"]
    assert not await anywhere.activity(victim)


async def test_a_tenant_who_knows_their_own_secret_cannot_put_deployments_where_another_would_find_them(place: Place) -> None:
    attacker, victim = await place.a_product("eve"), await place.a_product("ada")
    await place.connections.use_vercel_secret("eve", attacker.id, OWN_SECRET)
    project = place.vercel.add_project("teapot", "team_ada")
    lie = forged(place, project, "feat: Buy my coins")
    assert (await place.to_vercel(lie, attacker.id)).reason == "ignored: no project was chosen for this product"
    await place.installed(victim, "team_ada")
    assert not await place.activities.unrouted("ada")
    assert not (await place.activities.unrouted_everywhere((await place.a_user("root", is_operator=True)).id)).items


async def test_the_integration_and_an_own_webhook_make_one_activity(place: Place) -> None:
    product = await place.a_product()
    project = await place.a_project(product)
    await place.connections.use_vercel_secret("ada", product.id, OWN_SECRET)
    await place.work()
    deployment = place.vercel.deploy(project, "feat: Brew tea")
    await place.to_vercel(place.vercel.delivery(project, deployment))
    await place.to_vercel(place.vercel.delivery(project, deployment, "deployment.succeeded", secret=OWN_SECRET), product.id)
    await place.work()
    (activity,) = await place.activity(product)
    assert [sighting.event for sighting in activity.sightings] == ["deployment.promoted", "deployment.succeeded"]


async def test_a_test_of_an_own_webhook_turns_the_connection_live(place: Place) -> None:
    product = await place.a_product()
    await place.a_project(product)
    await place.connections.use_vercel_secret("ada", product.id, OWN_SECRET)
    signed = vercel_delivery(OWN_SECRET, "test-webhook", {}, at=place.now())
    assert (await place.to_vercel(signed, product.id)).status == HTTPStatus.OK
    assert (await place.connection(product, "vercel")).live_at == place.now()


async def test_what_no_product_claims_is_shown_to_its_own_team_and_to_the_operator_only(anywhere: Place) -> None:
    mine, theirs = await anywhere.a_product("ada"), await anywhere.a_product("eve")
    operator = await anywhere.a_user("root", is_operator=True)
    await anywhere.installed(mine, "team_ada")
    await anywhere.installed(theirs, "team_eve")
    of_team, of_person = anywhere.vercel.add_project("teapot", "team_ada"), anywhere.vercel.add_project("kettle", "user_bob")
    assert await deployed(anywhere, of_team, "feat: Secret tea\n\nand more") == "kept: no product has this project"
    assert await deployed(anywhere, of_person, "feat: Boil water") == "kept: no product has this project"

    (seen,) = await anywhere.activities.unrouted("ada")
    assert (seen.project, seen.owner, seen.summary) == (of_team.id, "team_ada", "feat: Secret tea")
    assert await anywhere.activities.unrouted("eve") == []
    bob = await anywhere.a_product("bob")
    assert await anywhere.activities.unrouted("bob") == [], "before the integration is installed"
    await anywhere.installed(bob, "user_bob")
    assert [each.project for each in await anywhere.activities.unrouted("bob")] == [of_person.id]

    everywhere = await anywhere.activities.unrouted_everywhere(operator.id)
    assert {each.project for each in everywhere.items} == {of_team.id, of_person.id}
    for user in ("ada", "nobody"):
        with pytest.raises(NotFound):
            await anywhere.activities.unrouted_everywhere(user)


async def test_a_member_of_a_team_who_deploys_does_not_open_it_to_their_own_account(place: Place) -> None:
    product = await place.a_product("eve")
    await place.installed(product, "user_eve")
    project = place.vercel.add_project("teapot", "team_ada")
    await deployed(place, project, user="user_eve")  # by somebody who works there, too
    assert await place.activities.unrouted("eve") == []


async def test_a_tenant_cannot_claim_a_project_of_another(anywhere: Place) -> None:
    victim, attacker = await anywhere.a_product("ada"), await anywhere.a_product("eve")
    unclaimed = anywhere.vercel.add_project("teapot", "team_ada")
    await deployed(anywhere, unclaimed)
    await anywhere.installed(attacker, "team_eve")
    with pytest.raises(NotFound):
        await anywhere.connections.claim_vercel("eve", attacker.id, unclaimed.id)
    anywhere.vercel.add_project(unclaimed.id, "team_eve")  # Vercel finds projects by name, too
    with pytest.raises(NotFound):
        await anywhere.connections.claim_vercel("eve", attacker.id, unclaimed.id)
    assert await anywhere.db.get(VercelClaim.key.id(unclaimed.id)) is None
    await anywhere.work()
    assert not await anywhere.activity(attacker)
    await anywhere.installed(victim, "team_ada")
    await anywhere.connections.claim_vercel("ada", victim.id, unclaimed.id)
    assert await deployed(anywhere, unclaimed, "fix: Tea was cold") == "accepted"


async def test_what_waited_is_taken_in_when_its_own_team_connects_the_project(anywhere: Place) -> None:
    product = await anywhere.a_product()
    project = anywhere.vercel.add_project("teapot", "team_ada")
    other = anywhere.vercel.add_project("kettle", "team_ada")
    await deployed(anywhere, project, "feat: Brew tea")
    await deployed(anywhere, other, "feat: Boil water")
    project.deployments.clear()  # so that polling does not find it
    await anywhere.installed(product, "team_ada")
    await anywhere.connections.claim_vercel("ada", product.id, project.id)
    await anywhere.work()
    (activity,) = await anywhere.activity(product)
    assert (activity.title, activity.sightings[0].event) == ("Brew tea", "deployment.promoted")
    assert [each.project for each in await anywhere.activities.unrouted("ada")] == [other.id], "it does not wait any more"


async def test_what_waited_for_a_former_owner_is_not_taken_in_by_the_next(place: Place) -> None:
    project = place.vercel.add_project("teapot", "team_ada")
    await deployed(place, project, "feat: Not for Eve")
    project.account = "team_eve"  # it was transferred
    project.deployments.clear()
    product = await place.a_product("eve")
    await place.installed(product, "team_eve")
    await place.connections.claim_vercel("eve", product.id, project.id)
    await place.work()
    assert not await place.activity(product)


async def test_what_nobody_claims_is_forgotten_after_thirty_days(place: Place) -> None:
    operator = await place.a_user("root", is_operator=True)
    project = place.vercel.add_project("teapot", "team_ada")
    signed = place.vercel.delivery(project, place.vercel.deploy(project, "feat: Brew tea"))
    assert [(await place.to_vercel(signed)).status for _ in range(2)] == [HTTPStatus.ACCEPTED, HTTPStatus.OK]
    place.clock.advance(timedelta(days=29))
    assert len((await place.activities.unrouted_everywhere(operator.id)).items) == 1
    place.clock.advance(timedelta(days=1))
    assert not (await place.activities.unrouted_everywhere(operator.id)).items


async def test_a_delivery_without_a_project_is_ignored(place: Place) -> None:
    signed = vercel_delivery(place.vercel.client_secret, "domain.created", {"team": {"id": "team_ada"}}, at=place.now())
    assert (await place.to_vercel(signed)).reason == "ignored: it names no project"
    for body in (b"{", b"[]", b"{}"):
        headers = {"x-vercel-signature": vercel_signature(place.vercel.client_secret, body)}
        assert (await place.webhooks.vercel(headers, body)).status == HTTPStatus.BAD_REQUEST


async def test_deployments_of_a_project_that_was_transferred_are_not_routed_to_its_former_owner(anywhere: Place) -> None:
    product = await anywhere.a_product("ada")
    project = await anywhere.a_project(product, "team_ada")
    await anywhere.work()
    project.account = "team_eve"
    assert await deployed(anywhere, project, "feat: For Eve alone") == "kept: no product has this project"
    assert not await anywhere.activity(product)
    assert await anywhere.activities.unrouted("ada") == []
    theirs = await anywhere.a_product("eve")
    await anywhere.installed(theirs, "team_eve")
    assert [each.summary for each in await anywhere.activities.unrouted("eve")] == ["feat: For Eve alone"]


async def test_a_delivery_that_waits_while_its_project_moves_to_another_product_is_not_taken_in_by_the_first(
    anywhere: Place,
) -> None:
    first, second = await anywhere.a_product(), await anywhere.a_product()
    project = await anywhere.a_project(first)
    await anywhere.work()
    signed = anywhere.vercel.delivery(project, anywhere.vercel.deploy(project, "feat: Brew tea"))
    assert (await anywhere.to_vercel(signed)).reason == "accepted"
    project.deployments.clear()
    await anywhere.connections.disconnect("ada", first.id, "vercel")
    await anywhere.connections.claim_vercel("ada", second.id, project.id)
    await anywhere.work()
    assert not await anywhere.activity(first)


async def a_table(clock: ManualClock, chaos: ChaosEngine) -> OpenTable:
    return await OpenTable(slothpost, chaos, clock, create=True).open()


def a_product(id: str, project: str | None, clock: ManualClock) -> Product:
    at = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    return Product(
        id=id, user="ada", name="T", voice=Voice(), created_at=at, vercel_project=MISSING if project is None else project
    )


def a_connection(product: str, project: str) -> Connection:
    return Connection(product=product, source="vercel", user="ada", external_id=project)


async def test_an_index_that_is_late_neither_hides_a_claim_nor_routes_to_a_product_that_gave_its_project_away(
    clock: ManualClock,
) -> None:
    chaos = ChaosEngine(slothpost.connect("memory://").engine, seed=1, stale_writes=50)
    db = await a_table(clock, chaos)
    routing = VercelRouting(db)
    await db.put(a_product("first", "prj_1", clock))
    await db.put(a_connection("first", "prj_1"))
    await db.put(VercelClaim(project="prj_1", product="first", user="ada"))
    assert not (await db.query(Product.by_vercel_project("prj_1"), first=1)).items, "the index is late"
    found = await routing.find("prj_1", None)
    assert found is not None
    assert found.product == "first"

    chaos.catch_up()
    await db.put(a_product("first", None, clock))
    await db.delete(Connection.key.id("first", "vercel"))
    await db.put(a_product("second", "prj_1", clock))
    await db.put(a_connection("second", "prj_1"))
    await db.put(VercelClaim(project="prj_1", product="second", user="eve"))
    assert [each.id for each in (await db.query(Product.by_vercel_project("prj_1"), first=9)).items] == ["first"], "and wrong"
    found = await routing.find("prj_1", None)
    assert found is not None
    assert found.product == "second"
    await db.close()


async def test_a_claim_alone_routes_nothing(place: Place) -> None:
    await place.db.put(VercelClaim(project="prj_1", product="p1", user="ada"))
    assert await VercelRouting(place.db).find("prj_1", None) is None


async def test_routing_reads_connected_products_only_however_many_are_idle(
    dynamodb_url: str, clock: ManualClock, soak: bool
) -> None:
    async with open_place(dynamodb_url, clock) as place:
        product = await place.a_product()
        project = await place.a_project(product)
        await place.work()
        alone = await _read_units(place, project)
        await place.db.load(a_product(f"idle{number}", None, clock) for number in range(10_000 if soak else 1_000))
        assert await _read_units(place, project) == alone
        assert alone <= 4, "half a unit for the index, one for the connection, and what a send looks at"


async def _read_units(place: Place, project: LocalProject) -> float:
    """Return what it costs to read, as DynamoDB counts it, when a deployment is delivered."""
    signed = place.vercel.delivery(project, place.vercel.deploy(project, "feat: Brew tea"))
    usage: Any = place.t.database.usage  # type: ignore[attr-defined]  # on DynamoDB it is a client
    before = usage.read_units
    assert (await place.to_vercel(signed)).reason == "accepted"
    return float(usage.read_units - before)
