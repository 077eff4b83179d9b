"""Somebody who was in a team of Vercel and left it: what the team deploys afterwards is none of theirs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sources.place import Place

from slothpost.errors import NotAllowed
from slothpost.model import VercelClaim
from slothpost.standins.vercel import LocalProject
from tickler.table import MISSING


async def deployed(place: Place, project: LocalProject, message: str) -> str:
    answer = await place.to_vercel(place.vercel.delivery(project, place.vercel.deploy(project, message)))
    await place.work()
    return answer.reason


async def test_a_former_member_learns_of_no_deployment_and_does_not_keep_the_project(place: Place) -> None:
    theirs, ours = await place.a_product("eve"), await place.a_product("ada")
    project = place.vercel.add_project("teapot", "team_ada")
    installation = await place.installed(theirs, "team_ada")
    await place.connections.claim_vercel("eve", theirs.id, project.id)
    await place.work()
    assert await deployed(place, project, "feat: While Eve was there") == "accepted"

    place.vercel.uninstall(installation)
    await place.installed(ours, "team_ada")  # so that Vercel goes on delivering
    await place.work(timedelta(minutes=30))  # a poll finds that the token of Eve is refused
    assert (await place.connection(theirs, "vercel")).broken is not MISSING
    told = await place.told(theirs)
    assert await deployed(place, project, "feat: After Eve has left") == "kept: no product has this project"
    assert await place.told(theirs) == told
    assert [each.summary for each in await place.activities.unrouted("ada")] == ["feat: After Eve has left"]

    await place.connections.claim_vercel("ada", ours.id, project.id)
    await place.work()
    claim = await place.db.get(VercelClaim.key.id(project.id))
    assert claim is not None
    assert claim.product == ours.id
    assert "After Eve has left" in [activity.title for activity in await place.activity(ours)]
    assert await deployed(place, project, "feat: For Ada alone") == "accepted"
    assert await place.told(theirs) == told


async def test_a_former_member_who_comes_back_proves_it_again(place: Place) -> None:
    product = await place.a_product("eve")
    project = await place.a_project(product, "team_ada")
    for token in [*place.vercel._tokens]:
        del place.vercel._tokens[token]
    await place.work(timedelta(minutes=30))
    assert await deployed(place, project, "feat: Meanwhile") == "kept: no product has this project"
    await place.installed(product, "team_ada")
    await place.connections.claim_vercel("eve", product.id, project.id)
    assert await deployed(place, project, "feat: Again") == "accepted"


async def test_what_no_product_has_is_shown_while_vercel_knows_the_installation(place: Place) -> None:
    product = await place.a_product("eve")
    project = place.vercel.add_project("teapot", "team_ada")
    place.vercel.uninstall(await place.installed(product, "team_ada"))
    await deployed(place, project, "feat: Not for Eve")
    with pytest.raises(NotAllowed):
        await place.connections.vercel_projects("eve")  # which the page of activity asks for before it shows what waits
    assert await place.activities.unrouted("eve") == []
