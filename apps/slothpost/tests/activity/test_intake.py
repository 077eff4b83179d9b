"""Taking in what sources reported: once, however often and however many at a time, and only for what is connected."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from sources.place import Place

from slothpost.activity.event import Event
from slothpost.activity.happening import (
    ActivityId,
    AppVersion,
    Commit,
    Deployment,
    Happening,
    News,
    PullRequest,
    Release,
    Stars,
)
from slothpost.model import Activity, Connection, Product, Source
from slothpost.standins.github_repository import new_sha
from tickler.table import MISSING

REPOSITORY = "7"


async def connected(place: Place, source: Source = "github", external_id: str = REPOSITORY, **attributes: object) -> Product:
    product = await place.a_product()
    await place.db.put(Connection(product=product.id, source=source, user="ada", external_id=external_id, **attributes))  # type: ignore[arg-type]  # as given
    return product


def event(
    product: Product, *happenings: Happening, source: Source = "github", delivery: str = "d1", subject: str = REPOSITORY
) -> Event:
    return Event(product=product.id, source=source, delivery=delivery, subject=subject, happenings=happenings)


def happening(id: str, name: str, news: News, *, private: bool | None = False, repository: str | None = None) -> Happening:
    return Happening(id=ActivityId(id), event=name, news=news, is_private=private, repository=repository)


def a_push(id: str, message: str = "feat: brew tea") -> Happening:
    return happening(id, "push", Commit(message))


async def test_an_event_survives_its_way_through_the_engine() -> None:
    news: Sequence[News] = [
        Commit("m"), PullRequest("t", "b", ("l",)), Release("n", "v1", "x", is_prerelease=True), Deployment(None),
        AppVersion("1.0", "IN_REVIEW"), Stars(100),
    ]  # fmt: skip
    happenings = tuple(happening(f"x:{number}", "e", each, private=None) for number, each in enumerate(news))
    sent = Event(product="p1", source="github", delivery="d", subject=None, happenings=happenings)
    assert Event.from_json(sent.to_json()) == sent


async def test_taking_an_event_twice_is_the_same_as_taking_it_once(anywhere: Place) -> None:
    product = await connected(anywhere)
    taken = event(product, *(a_push(f"commit:{new_sha()}", f"feat: brew tea {number}") for number in range(3)))
    assert await anywhere.intake.take(taken) == "3 new"
    before = await anywhere.activity(product)
    anywhere.clock.advance(timedelta(days=1))
    assert await anywhere.intake.take(taken) == "3 known"
    assert await anywhere.activity(product) == before


async def test_many_sources_at_the_same_time_make_one_activity(anywhere: Place) -> None:
    product = await connected(anywhere)
    await anywhere.db.put(Connection(product=product.id, source="vercel", user="ada", external_id="prj_1"))
    id = f"commit:{new_sha()}"
    sightings = [
        event(product, a_push(id)),
        event(product, happening(id, "pull_request", PullRequest("Brew tea on a schedule"))),
        event(
            product,
            happening(id, "deployment.promoted", Deployment("feat: brew tea"), private=None),
            source="vercel",
            subject="prj_1",
        ),
        event(product, happening(id, "deployment", Deployment("feat: brew tea"), private=None), source="vercel", subject="prj_1"),
    ]
    done = await asyncio.gather(*map(anywhere.intake.take, sightings))
    assert sorted(each.split()[1] for each in done) == ["improved"] * 3 + ["new"]
    (activity,) = await anywhere.activity(product)
    assert (activity.title, len(activity.sightings)) == ("Brew tea on a schedule", 4)


async def test_a_richer_source_brings_what_was_not_worth_telling_into_the_index_of_what_is(anywhere: Place) -> None:
    product = await connected(anywhere)
    id = f"commit:{new_sha()}"
    await anywhere.intake.take(event(product, a_push(id, "wip")))
    assert await anywhere.db.count(Activity.for_x(product.id)) == 0
    await anywhere.intake.take(event(product, happening(id, "pull_request", PullRequest("Add a timer for tea"))))
    assert [each.id async for each in anywhere.db.iterate(Activity.for_x(product.id))] == [id]


async def test_an_activity_that_a_post_takes_meanwhile_stays_taken(anywhere: Place) -> None:
    product = await connected(anywhere)
    id = f"commit:{new_sha()}"
    await anywhere.intake.take(event(product, a_push(id)))
    better = event(product, happening(id, "pull_request", PullRequest("Add a timer for tea")))
    key = Activity.key.id(product.id, id)
    await asyncio.gather(anywhere.intake.take(better), anywhere.db.update(key, Activity.x_post.set("post-1")))
    found = await anywhere.db.get(key)
    assert found is not None
    assert (found.title, found.x_post) == ("Add a timer for tea", "post-1")


async def test_nothing_is_taken_in_for_what_is_not_connected(anywhere: Place) -> None:
    product, unconnected = await connected(anywhere), await anywhere.a_product()
    for taken in (
        event(product, a_push(f"commit:{new_sha()}"), subject="8"),
        event(product, a_push(f"commit:{new_sha()}"), source="vercel", subject="prj_1"),
        event(unconnected, a_push(f"commit:{new_sha()}")),
        event(unconnected, happening("version:1", "lookup", AppVersion("1", "READY_FOR_DISTRIBUTION")), source="appstore"),
    ):
        assert await anywhere.intake.take(taken) == "nothing was taken in: this is no longer connected to the product"
    assert not await anywhere.activity(product)
    assert not await anywhere.activity(unconnected)


async def test_a_vercel_connection_without_a_project_takes_in_nothing(place: Place) -> None:
    product = await place.a_product()
    await place.connections.use_vercel_secret("ada", product.id, "secret")
    taken = event(product, happening("deployment:1", "deployment", Deployment("x")), source="vercel", subject="prj_1")
    assert (await place.intake.take(taken)).startswith("nothing was taken in")


@pytest.mark.parametrize(
    ("repository", "private", "expected"), [("7", True, True), ("7", False, False), ("8", False, True), (None, False, True)]
)
async def test_a_deployment_that_does_not_say_is_as_private_as_the_connected_repository(
    place: Place, repository: str | None, private: bool, expected: bool
) -> None:
    product = await connected(place, is_private=private)
    await place.db.put(Connection(product=product.id, source="vercel", user="ada", external_id="prj_1"))
    told = happening(f"commit:{new_sha()}", "deployment", Deployment("feat: tea"), private=None, repository=repository)
    await place.intake.take(event(product, told, source="vercel", subject="prj_1"))
    (activity,) = await place.activity(product)
    assert activity.is_private is expected


async def test_an_activity_of_the_future_happened_now(place: Place) -> None:
    product = await connected(place)
    future = Happening(id=ActivityId("release:1"), event="release", news=Release("Tea", "v1"), at=place.now() + timedelta(days=9))
    await place.intake.take(event(product, future, a_push(f"commit:{new_sha()}")))
    assert {activity.at for activity in await place.activity(product)} == {place.now()}


async def test_stars_between_milestones_are_left_out(place: Place) -> None:
    product = await connected(place)
    told = event(product, happening("stars:99", "star", Stars(99)), happening("stars:100", "star", Stars(100)))
    assert await place.intake.take(told) == "1 left out, 1 new"
    assert await place.told(product) == ["stars:100"]
    assert await place.intake.take(event(product)) == "nothing to take in"


async def test_the_halves_of_an_app_release_that_arrive_together_are_one_activity(anywhere: Place) -> None:
    product = await connected(anywhere, "appstore", "42")
    live = "READY_FOR_DISTRIBUTION"
    webhook = event(product, happening("version:i-1", "ready_for_distribution", AppVersion("", live)), source="appstore")
    lookup = event(product, happening("version:1.1", "lookup", AppVersion("1.1", live, "Tea for two.")), source="appstore")
    await asyncio.gather(*(anywhere.intake.take(each) for each in (webhook, lookup, webhook)))
    (activity,) = await anywhere.activity(product)
    assert "1.1" in activity.title
    assert len(activity.sightings) == 2


async def test_activity_comes_in_pages_with_the_latest_first(anywhere: Place) -> None:
    product = await connected(anywhere)
    for number in range(5):
        await anywhere.intake.take(event(product, a_push(f"commit:{new_sha()}", f"feat: brew tea {number}")))
        anywhere.clock.advance(timedelta(minutes=1))
    page = await anywhere.activities.recent("ada", product.id, first=3)
    assert [activity.title for activity in page.items] == ["Brew tea 4", "Brew tea 3", "Brew tea 2"]
    rest = await anywhere.activities.recent("ada", product.id, first=3, after=page.end)
    assert ([activity.title for activity in rest.items], rest.has_next) == (["Brew tea 1", "Brew tea 0"], False)
    assert {activity.x_post for activity in page.items} == {MISSING}
