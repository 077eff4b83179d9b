"""Installing the integration of Vercel, and claiming projects: only a user's own list proves that a project is theirs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from sources.place import BASE_URL, Place

from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.identifiers import poll_key
from slothpost.model import Product, VercelClaim, VercelInstallation
from slothpost.sources.connections import Connections
from slothpost.sources.setup import Setup
from slothpost.sources.source_settings import SourceSettings
from slothpost.standins.faults import Fault
from slothpost.standins.vercel import LocalProject
from tickler.table import MISSING


async def deployed(place: Place, project: LocalProject) -> str:
    answer = await place.to_vercel(place.vercel.delivery(project, place.vercel.deploy(project, "feat: Brew tea")))
    await place.work()
    return answer.reason


async def state_of(place: Place, product: Product) -> str:
    url = await place.connections.vercel_install_url(product.user, product.id)
    assert url.startswith(f"{place.vercel.url}/integrations/slothpost/new?")
    return parse_qs(urlsplit(url).query)["state"][0]


async def test_a_user_installs_the_integration_and_sees_their_own_projects_only(place: Place) -> None:
    product = await place.a_product()
    place.vercel.add_project("teapot", "team_ada")
    place.vercel.add_project("biscuits", "team_ada")
    place.vercel.add_project("secret", "team_eve")
    await place.installed(product, "team_ada")
    assert [choice.name for choice in await place.connections.vercel_projects("ada")] == ["biscuits", "teapot"]
    (installation,) = [each async for each in place.db.iterate(VercelInstallation.key("ada"))]
    assert (installation.team_id, installation.vercel_user_id) == ("team_ada", "someone")
    token = next(iter(place.vercel._tokens))
    assert token not in repr(installation), "it is encrypted"


async def test_a_list_of_more_than_a_hundred_projects_has_all_of_them(place: Place) -> None:
    product = await place.a_product()
    for number in range(230):
        place.vercel.add_project(f"p{number:03}", "user_ada")
    await place.installed(product, "user_ada")
    assert len(await place.connections.vercel_projects("ada")) == 230


async def test_two_installations_are_two_accounts_of_one_user(place: Place) -> None:
    product = await place.a_product()
    own, of_team = place.vercel.add_project("own", "user_ada"), place.vercel.add_project("shared", "team_ada")
    await place.installed(product, "user_ada")
    await place.installed(product, "team_ada")
    assert {choice.id for choice in await place.connections.vercel_projects("ada")} == {own.id, of_team.id}
    await place.connections.claim_vercel("ada", product.id, own.id)
    assert (await place.connection(product, "vercel")).owners == ["user_ada"]


async def test_before_the_integration_is_installed_there_is_no_list(place: Place) -> None:
    product = await place.a_product()
    project = place.vercel.add_project("teapot", "team_ada")
    with pytest.raises(NotAllowed, match="install the Vercel integration first"):
        await place.connections.vercel_projects("ada")
    with pytest.raises(NotAllowed, match="install the Vercel integration first"):
        await place.connections.claim_vercel("ada", product.id, project.id)


async def test_an_operator_without_an_integration_is_named(place: Place) -> None:
    product = await place.a_product()
    connections = Connections(place.t, place.db, SourceSettings(), base_url=BASE_URL)
    with pytest.raises(NotAllowed, match="ask its operator"):
        await connections.vercel_install_url("ada", product.id)


async def test_a_state_counts_for_the_user_who_began_and_for_an_hour(place: Place) -> None:
    product = await place.a_product("ada")
    await place.a_product("eve")
    state = await state_of(place, product)
    code, installation = place.vercel.install("someone", "team_ada")
    for user, given in (("eve", state), ("ada", "made up"), ("ada", "")):
        with pytest.raises(InvalidField, match="state: you did not begin this here"):
            await place.connections.vercel_authorized(user, code, installation.id, "team_ada", given)
    place.clock.advance(timedelta(hours=1, seconds=1))
    with pytest.raises(InvalidField, match="state: it took too long"):
        await place.connections.vercel_authorized("ada", code, installation.id, "team_ada", state)
    again = await state_of(place, product)
    assert await place.connections.vercel_authorized("ada", code, installation.id, "team_ada", again) == product.id


async def test_whose_installation_it_is_says_vercel_and_not_the_address_of_the_return(place: Place) -> None:
    product = await place.a_product("eve")
    victim = place.vercel.add_project("teapot", "team_ada")
    await place.to_vercel(place.vercel.delivery(victim, place.vercel.deploy(victim, "feat: Secret tea")))
    for team, configuration in (("team_ada", None), (None, None), ("team_eve", "icfg_of_ada")):
        code, installation = place.vercel.install("user_eve", "team_eve")
        state = await state_of(place, product)
        with pytest.raises(NotAllowed, match="issued this code for another installation"):
            await place.connections.vercel_authorized("eve", code, configuration or installation.id, team, state)
    assert await place.activities.unrouted("eve") == []
    with pytest.raises(NotAllowed):
        await place.connections.vercel_projects("eve")


async def test_a_code_works_once(place: Place) -> None:
    product = await place.a_product()
    code, installation = place.vercel.install("user_ada")
    state = await state_of(place, product)
    await place.connections.vercel_authorized("ada", code, installation.id, None, state)
    with pytest.raises(NotAllowed, match="Invalid code: install the integration again"):
        await place.connections.vercel_authorized("ada", code, installation.id, None, state)


async def test_a_project_is_claimed_with_its_schedule_and_polled_at_once(anywhere: Place) -> None:
    product = await anywhere.a_product()
    project = anywhere.vercel.add_project("teapot", "team_ada")
    anywhere.vercel.deploy(project, "feat: Brew tea")
    await anywhere.installed(product, "team_ada")
    setup = await anywhere.connections.claim_vercel("ada", product.id, project.id)
    assert (setup.name, setup.external_id, setup.url_path, setup.secret) == ("teapot", project.id, "/webhooks/vercel", None)
    stored = await anywhere.db.get(product.key)
    assert stored is not None
    assert stored.vercel_project == project.id
    assert await anywhere.t.schedules.get("ada", poll_key(product.id, "vercel")) is not None
    await anywhere.work()
    assert [activity.title for activity in await anywhere.activity(product)] == ["Brew tea"]


async def test_a_second_claim_is_refused_by_name(anywhere: Place) -> None:
    first, second = await anywhere.a_product(), await anywhere.a_product()
    project = await anywhere.a_project(first, "team_ada")
    with pytest.raises(NotAllowed, match="the project teapot belongs to another product"):
        await anywhere.connections.claim_vercel("ada", second.id, project.id)
    colleague = await anywhere.a_product("bob")
    await anywhere.installed(colleague, "team_ada")
    with pytest.raises(NotAllowed, match="the project teapot belongs to another product"):
        await anywhere.connections.claim_vercel("bob", colleague.id, project.id)
    await anywhere.connections.disconnect("ada", first.id, "vercel")
    await anywhere.connections.claim_vercel("bob", colleague.id, project.id)
    claim = await anywhere.db.get(VercelClaim.key.id(project.id))
    assert claim is not None
    assert (claim.product, claim.user) == (colleague.id, "bob")


async def test_what_somebody_has_lost_can_be_claimed_by_its_owner(anywhere: Place) -> None:
    first, second = await anywhere.a_product("ada"), await anywhere.a_product("eve")
    project = await anywhere.a_project(first, "team_ada")
    await anywhere.work()
    project.account = "team_eve"
    await anywhere.installed(second, "team_eve")
    await anywhere.connections.claim_vercel("eve", second.id, project.id)
    assert await deployed(anywhere, project) == "accepted"
    assert len(await anywhere.activity(second)) == 1
    assert not await anywhere.activity(first)
    (lost,) = await anywhere.connections.list("ada", first.id)
    assert (lost.external_id, lost.is_polled) == (None, False)
    assert lost.broken == "the project was connected to another product, as it is others' now"
    await anywhere.connections.disconnect("ada", first.id, "vercel")
    claim = await anywhere.db.get(VercelClaim.key.id(project.id))
    assert claim is not None
    assert claim.product == second.id


async def test_a_colleague_can_claim_what_a_removed_integration_had(place: Place) -> None:
    product, colleagues = await place.a_product("ada"), await place.a_product("bob")
    project = place.vercel.add_project("teapot", "team_ada")
    installation = await place.installed(product, "team_ada")
    await place.connections.claim_vercel("ada", product.id, project.id)
    place.vercel.uninstall(installation)
    await place.work()
    await place.installed(colleagues, "team_ada")
    await place.connections.claim_vercel("bob", colleagues.id, project.id)
    assert await deployed(place, project) == "accepted"
    assert len(await place.activity(colleagues)) == 1


async def test_of_claims_at_the_same_time_one_succeeds(anywhere: Place) -> None:
    products = [await anywhere.a_product() for _ in range(4)]
    project = anywhere.vercel.add_project("teapot", "team_ada")
    await anywhere.installed(products[0], "team_ada")
    claims = (anywhere.connections.claim_vercel("ada", product.id, project.id) for product in products)
    results = await asyncio.gather(*claims, return_exceptions=True)
    assert [type(result) for result in results].count(Setup) == 1, results
    claim = await anywhere.db.get(VercelClaim.key.id(project.id))
    stored = await anywhere.db.get_many([product.key for product in products])
    having = [product.id for product in stored if product is not None and product.vercel_project == project.id]
    assert claim is not None
    assert having == [claim.product]


async def test_another_project_takes_the_place_of_the_first_which_others_may_then_claim(place: Place) -> None:
    product, other = await place.a_product(), await place.a_product()
    first = await place.a_project(product, "team_ada", name="first")
    await place.connections.use_vercel_secret("ada", product.id, "of the account")
    second = place.vercel.add_project("second", "team_ada")
    await place.connections.claim_vercel("ada", product.id, second.id)
    connection = await place.connection(product, "vercel")
    assert (connection.name, connection.live_at) == ("second", MISSING)
    assert connection.secret is not MISSING, "the webhook of the account is the same"
    await place.connections.claim_vercel("ada", other.id, first.id)


async def test_claiming_the_same_project_again_renews_the_connection(place: Place) -> None:
    product = await place.a_product()
    project = await place.a_project(product, "team_ada")
    await place.to_vercel(place.vercel.delivery(project, place.vercel.deploy(project, "feat: Brew tea")))
    await place.installed(product, "team_ada")
    setup = await place.connections.claim_vercel("ada", product.id, project.id)
    assert setup.is_live


async def test_what_belongs_to_others_is_not_found(place: Place) -> None:
    theirs, mine = await place.a_product("ada"), await place.a_product("eve")
    await place.a_project(theirs, "team_ada")
    own = await place.a_project(mine, "team_eve", name="own")
    for attempt in (
        place.connections.claim_vercel("eve", theirs.id, own.id),
        place.connections.vercel_install_url("eve", theirs.id),
        place.connections.use_vercel_secret("eve", theirs.id, "x"),
        place.connections.disconnect("eve", theirs.id, "vercel"),
        place.connections.setup("eve", theirs.id, "vercel"),
        place.connections.list("eve", theirs.id),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert len(await place.connections.vercel_projects("eve")) == 1


@pytest.mark.parametrize("project", ["", "../v2/user", "prj_1?teamId=team_ada", "prj 1", "x" * 65, "prj_1/domains"])
async def test_an_id_that_is_none_is_refused(place: Place, project: str) -> None:
    product = await place.a_product()
    await place.installed(product, "team_ada")
    with pytest.raises(InvalidField, match="is not a project"):
        await place.connections.claim_vercel("ada", product.id, project)


async def test_an_installation_that_was_removed_is_asked_for_anew_unless_there_is_another(place: Place) -> None:
    product = await place.a_product()
    project = place.vercel.add_project("teapot", "team_ada")
    place.vercel.uninstall(await place.installed(product, "team_ada"))
    await deployed(place, project)
    assert await place.activities.unrouted("ada")
    with pytest.raises(NotAllowed, match="install the integration again"):
        await place.connections.vercel_projects("ada")
    with pytest.raises(NotAllowed, match="install the Vercel integration first"):
        await place.connections.claim_vercel("ada", product.id, project.id)
    assert not await place.activities.unrouted("ada"), "it proves nothing any more"
    await place.installed(product, "user_ada")
    assert await place.connections.vercel_projects("ada") == []
    with pytest.raises(NotFound):
        await place.connections.claim_vercel("ada", product.id, project.id)


async def test_vercel_being_away_is_said_so(place: Place) -> None:
    product = await place.a_product()
    await place.installed(product, "team_ada")
    place.vercel.faults.add(Fault(kind="fail", status=500), on="/projects")
    with pytest.raises(NotAllowed, match="Vercel failed: status 500: try again in a moment"):
        await place.connections.vercel_projects("ada")
