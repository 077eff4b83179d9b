"""Polling finds what webhooks missed, at no cost while nothing happens, and stops when it is no longer allowed."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sources.place import Place

from slothpost.identifiers import poll_key
from slothpost.model import Connection, Product, VercelClaim
from slothpost.sources.poll_schedule import POLL_INTERVAL
from slothpost.standins.deliveries import app_version_state, appstore_delivery
from slothpost.standins.faults import Fault
from slothpost.standins.github_repository import new_sha
from tickler import RetryLater
from tickler.table import MISSING

A_WHILE = 2 * POLL_INTERVAL  # in which every connection is polled: each has a minute of its own


async def test_releases_and_merged_pull_requests_that_no_webhook_reported_are_found(place: Place) -> None:
    product = await place.a_product()
    repository, _, _ = await place.a_repository(product)
    await place.work()
    repository.merge("Brew tea on a schedule", "Teapots now start by themselves.", labels=["enhancement"])
    repository.merge("Not for everybody", into="experiments")
    repository.close("Never mind")
    repository.publish("v1.2.0", "Tea time", "- Brew tea on a schedule")
    await place.work(A_WHILE)
    found = {activity.id.partition(":")[0]: activity for activity in await place.activity(product)}
    assert set(found) == {"commit", "release"}
    assert (found["commit"].title, found["commit"].sightings[0].delivery) == ("Brew tea on a schedule", "poll")
    shown = (await place.connections.list("ada", product.id))[0]
    assert (shown.problem, shown.polled_at is not None) == (None, True)


async def test_polling_costs_nothing_while_nothing_happens(place: Place) -> None:
    product = await place.a_product()
    repository, _, token = await place.a_repository(product)
    for number in range(5):
        repository.merge(f"Feature {number}")
    await place.work()
    place.github.calls.clear()
    remaining = place.github.tokens[token].remaining
    await place.work(timedelta(hours=2))
    assert len(place.github.calls) in (7 * 3, 8 * 3)
    assert all(call.endswith(" 304") for call in place.github.calls), place.github.calls
    assert place.github.tokens[token].remaining == remaining


async def test_a_commit_seen_as_push_pull_request_deployment_and_poll_is_one_activity(anywhere: Place) -> None:
    product = await anywhere.a_product()
    repository, secret, _ = await anywhere.a_repository(product)
    project = await anywhere.a_project(product)
    await anywhere.work()
    sha = new_sha()
    pull = repository.merge("Brew tea on a schedule", sha=sha)
    deployment = anywhere.vercel.deploy(project, "feat: brew tea (#1)", sha=sha, repository=repository)
    await anywhere.to_vercel(anywhere.vercel.delivery(project, deployment))
    await anywhere.to_github(product, repository.pushed(secret, "feat: brew tea (#1)", shas=[sha]))
    await anywhere.to_github(product, repository.merged(secret, pull))
    await anywhere.work(A_WHILE)
    (activity,) = await anywhere.activity(product)
    assert (activity.id, activity.title) == (f"commit:{sha}", "Brew tea on a schedule")
    assert {(each.source, each.event) for each in activity.sightings} == {
        ("vercel", "deployment.promoted"), ("vercel", "deployment"), ("github", "push"), ("github", "pull_request")
    }  # fmt: skip


async def test_the_first_poll_takes_in_two_weeks_and_no_more(place: Place) -> None:
    product = await place.a_product()
    repository = place.github.add_repository("ada/teapot")
    repository.merge("A long time ago")
    repository.publish("v0.1")
    place.clock.advance(timedelta(days=14, seconds=1))
    repository.merge("Lately")
    token = place.github.issue_token("ada")
    await place.connections.connect_github("ada", product.id, token, "ada/teapot")
    await place.work()
    assert [activity.title for activity in await place.activity(product)] == ["Lately"]


async def test_many_pages_are_read_until_one_has_nothing_recent(place: Place) -> None:
    product = await place.a_product()
    repository = place.github.add_repository("ada/teapot")
    for number in range(80):
        repository.merge(f"Old feature {number}")
    place.clock.advance(timedelta(days=20))
    for number in range(120):
        repository.merge(f"Feature {number}")
    token = place.github.issue_token("ada")
    await place.connections.connect_github("ada", product.id, token, "ada/teapot")
    await place.work()
    assert len((await place.activities.recent("ada", product.id, first=200)).items) == 120
    assert [call for call in place.github.calls if "/pulls" in call] == ["GET /repos/ada/teapot/pulls 200"] * 4


async def test_a_milestone_of_stars_is_found_once_and_the_first_count_is_none(place: Place) -> None:
    product = await place.a_product()
    repository = place.github.add_repository("ada/teapot")
    repository.stars = 150
    secret = (await place.connections.connect_github("ada", product.id, place.github.issue_token("ada"), "ada/teapot")).secret
    assert secret is None, "the webhook was created"
    await place.work()
    assert not await place.activity(product)
    repository.stars = 1_003
    await place.work(A_WHILE)
    assert await place.told(product) == ["stars:1000"]
    repository.stars = 999
    await place.work(A_WHILE)
    repository.stars = 1_001
    await place.work(A_WHILE)
    assert await place.told(product) == ["stars:1000"]


async def test_a_repository_that_was_renamed_is_followed_and_one_that_took_its_name_is_not(place: Place) -> None:
    product = await place.a_product()
    repository, _, _ = await place.a_repository(product)
    await place.work()
    repository.rename("ada/kettle")
    repository.merge("Under the new name")
    await place.work(A_WHILE)
    assert (await place.connection(product)).name == "ada/kettle"
    assert [activity.title for activity in await place.activity(product)] == ["Under the new name"]
    repository.rename("ada/pot")
    other = place.github.add_repository("ada/kettle")
    other.merge("Of another repository")
    await place.work(A_WHILE)
    assert len(await place.activity(product)) == 1
    assert (await place.connection(product)).poll_error == "ada/kettle is another repository now: choose yours again"


async def test_a_repository_that_becomes_private_is_private_from_then_on(place: Place) -> None:
    product = await place.a_product()
    repository, _, _ = await place.a_repository(product)
    await place.work()
    repository.private = True
    repository.merge("Secret tea")
    await place.work(A_WHILE)
    assert (await place.connection(product)).is_private
    (activity,) = await place.activity(product)
    assert activity.is_private


async def test_a_token_that_is_no_longer_valid_stops_polling_and_tells_the_user_once(anywhere: Place) -> None:
    product = await anywhere.a_product()
    repository, secret, token = await anywhere.a_repository(product)
    await anywhere.work()
    anywhere.github.revoke(token)
    await anywhere.work(timedelta(hours=1))
    asked = len(anywhere.github.calls)
    await anywhere.work(timedelta(hours=1))
    assert len(anywhere.github.calls) == asked
    (notice,) = await anywhere.notices()
    assert notice.text == "GitHub must be connected again: GitHub does not accept the connection any more: Bad credentials"
    assert notice.product == product.id
    shown = (await anywhere.connections.list("ada", product.id))[0]
    assert (shown.broken, shown.is_polled) == ("GitHub does not accept the connection any more: Bad credentials", False)
    assert await anywhere.t.schedules.get("ada", poll_key(product.id, "github")) is None
    assert (await anywhere.to_github(product, repository.pushed(secret, "feat: Still heard"))).reason == "accepted"

    again = anywhere.github.issue_token("ada", frozenset({"contents"}))
    await anywhere.connections.connect_github("ada", product.id, again, "ada/teapot")
    repository.publish("v2")
    await anywhere.work()
    assert any(id.startswith("release:") for id in await anywhere.told(product))
    assert (await anywhere.connections.list("ada", product.id))[0].broken is None


async def test_two_polls_that_find_a_token_invalid_at_once_tell_the_user_once(anywhere: Place) -> None:
    product = await anywhere.a_product()
    _, _, token = await anywhere.a_repository(product)
    anywhere.github.revoke(token)
    done = await asyncio.gather(*(anywhere.poll(product) for _ in range(4)))
    assert sum(each.startswith("stopped: ") for each in done) == 1, done
    assert len(await anywhere.notices()) == 1


async def test_a_limit_postpones_the_poll_until_it_ends_and_is_shown(place: Place) -> None:
    product = await place.a_product()
    repository, _, _ = await place.a_repository(product)
    await place.work()
    repository.merge("Brew tea")
    place.clock.advance(timedelta(minutes=2))
    reset = place.now() + timedelta(minutes=50)
    place.github.faults.limit(reset_at=reset, on="/repos/ada/teapot")
    with pytest.raises(RetryLater) as later:
        await place.poll(product)
    assert later.value.at == int(reset.timestamp() * 1000)
    shown = (await place.connections.list("ada", product.id))[0]
    assert shown.problem == "GitHub asks to wait: API rate limit exceeded for user ID 1."
    calls = len(place.github.calls)
    assert await place.poll(product) == f"nothing asked before {reset:%H:%M} UTC, as GitHub wishes"
    assert len(place.github.calls) == calls
    await place.work(timedelta(hours=1, minutes=30))
    assert [activity.title for activity in await place.activity(product)] == ["Brew tea"]
    assert (await place.connections.list("ada", product.id))[0].problem is None


async def test_what_github_asks_to_wait_is_waited(place: Place) -> None:
    place.github.poll_interval = 3_600
    product = await place.a_product()
    await place.a_repository(product)
    await place.work(timedelta(seconds=1))
    place.github.calls.clear()
    await place.work(timedelta(minutes=59))
    assert not place.github.calls
    await place.work(timedelta(minutes=17))
    assert len(place.github.calls) == 3


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        (Fault(kind="fail", status=502), "GitHub failed: status 502"),
        (Fault(kind="drop"), "GitHub could not be reached"),
        (Fault(kind="garble"), "GitHub sent an answer that cannot be read: the body is not JSON"),
        (Fault(kind="cut"), "GitHub could not be reached"),
    ],
)
async def test_an_api_that_fails_is_shown_and_asked_again(place: Place, fault: Fault, shown: str) -> None:
    product = await place.a_product()
    repository, _, _ = await place.a_repository(product)
    repository.merge("Brew tea")
    place.github.faults.add(fault, 2, on="/pulls")
    done = await place.poll(product)
    assert done == f"failed: {shown}"
    assert (await place.connection(product)).poll_error == shown
    assert not await place.activity(product)
    place.github.faults._next.clear()
    await place.work(A_WHILE)
    assert [activity.title for activity in await place.activity(product)] == ["Brew tea"]
    assert (await place.connection(product)).poll_error is MISSING


async def test_what_a_token_may_not_read_is_named_and_the_rest_is_read(place: Place) -> None:
    product = await place.a_product()
    repository = place.github.add_repository("ada/teapot", private=True)
    token = place.github.issue_token("ada", frozenset({"contents"}))
    await place.connections.connect_github("ada", product.id, token, "ada/teapot")
    repository.publish("v1", "Tea time")
    repository.merge("Not to be read")
    await place.work()
    (told,) = await place.told(product)
    assert told.startswith("release:")
    assert (await place.connection(product)).poll_error == "GitHub refuses: Resource not accessible by personal access token"


async def test_etags_are_stored_after_the_activity(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    product = await place.a_product()
    repository, _, _ = await place.a_repository(product)
    repository.merge("Brew tea")

    async def dies(event: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place.intake, "take", dies)
        with pytest.raises(KeyboardInterrupt):
            await place.poll(product)
    assert await place.poll(product) == "1 new"


async def test_a_deployment_that_no_webhook_reported_is_found(place: Place) -> None:
    product = await place.a_product()
    project = await place.a_project(product)
    await place.work()
    place.vercel.deploy(project, "feat: Brew tea")
    place.vercel.deploy(project, "feat: Try tea", target=None)
    place.vercel.deploy(project, "feat: Tea is not served yet", substate="STAGED")
    await place.work(A_WHILE)
    assert [activity.title for activity in await place.activity(product)] == ["Brew tea"]


async def test_polling_vercel_is_conditional_too(place: Place) -> None:
    product = await place.a_product()
    project = await place.a_project(product)
    place.vercel.deploy(project, "feat: Brew tea")
    await place.work()
    place.vercel.calls.clear()
    await place.work(A_WHILE)
    assert {call for call in place.vercel.calls if "deployments" in call} == {"GET /v6/deployments 304"}


async def test_an_integration_that_was_removed_stops_polling_and_tells_the_user_once(place: Place) -> None:
    product = await place.a_product()
    project = place.vercel.add_project("teapot", "team_ada")
    installation = await place.installed(product, "team_ada")
    await place.connections.claim_vercel("ada", product.id, project.id)
    await place.work()
    place.vercel.uninstall(installation)
    await place.work(timedelta(hours=2))
    (notice,) = await place.notices()
    assert notice.text == "Vercel must be connected again: Vercel does not accept the connection any more: Not authorized"
    await place.installed(product, "team_ada")
    await place.connections.claim_vercel("ada", product.id, project.id)
    place.vercel.deploy(project, "feat: Brew tea")
    await place.work()
    assert [activity.title for activity in await place.activity(product)] == ["Brew tea"]


async def test_a_project_that_is_not_the_users_any_more_is_given_up_so_that_its_owner_can_claim_it(anywhere: Place) -> None:
    product, theirs = await anywhere.a_product("ada"), await anywhere.a_product("eve")
    project = await anywhere.a_project(product, "team_ada")
    await anywhere.work()
    project.account = "team_eve"
    assert (await anywhere.poll(product, "vercel")).startswith("failed: ")
    assert await anywhere.db.get(VercelClaim.key.id(project.id)) is not None, "Vercel may be wrong once"
    assert (await anywhere.poll(product, "vercel")).startswith("stopped: ")
    assert await anywhere.db.get(VercelClaim.key.id(project.id)) is None
    stored = await anywhere.db.get(Product.key.id(product.id))
    assert stored is not None
    assert stored.vercel_project is MISSING
    assert len(await anywhere.notices()) == 1
    await anywhere.installed(theirs, "team_eve")
    await anywhere.connections.claim_vercel("eve", theirs.id, project.id)


async def test_a_limit_of_vercel_postpones_the_poll(place: Place) -> None:
    product = await place.a_product()
    await place.a_project(product)
    await place.work()
    place.vercel.faults.limit(reset_at=place.now() + timedelta(days=7), on="/v6/deployments")
    with pytest.raises(RetryLater) as later:
        await place.poll(product, "vercel")
    assert later.value.at == place.clock.now_ms() + 86_400_000, "and for no longer than a day"


async def test_a_version_in_the_app_store_that_no_webhook_reported_is_found(place: Place) -> None:
    product = await place.a_product()
    place.store.release(42, "1.0", at=place.now() - timedelta(days=300))
    await place.connections.connect_appstore("ada", product.id, "42")
    await place.work()
    assert not await place.activity(product), "it is out for long"
    place.store.release(42, "1.1", notes="Tea for two.", at=place.now() - timedelta(days=2))
    await place.work(A_WHILE)
    (activity,) = await place.activity(product)
    assert (activity.id, activity.kind) == ("version:1.1", "app_release")
    assert "1.1" in activity.title


@pytest.mark.parametrize("first", ["webhook", "lookup"])
async def test_a_version_that_webhook_and_lookup_report_is_one_activity_with_its_notes(anywhere: Place, first: str) -> None:
    product = await anywhere.a_product()
    secret = (await anywhere.connections.connect_appstore("ada", product.id, "42")).secret or ""
    anywhere.store.release(42, "1.0", at=anywhere.now() - timedelta(days=90))
    await anywhere.work()
    signed = appstore_delivery(secret, app_version_state("i-1", "READY_FOR_DISTRIBUTION", at=anywhere.now()))
    again = appstore_delivery(secret, app_version_state("i-1", "READY_FOR_DISTRIBUTION", at=anywhere.now()))
    if first == "webhook":
        await anywhere.to_appstore(product, signed)
        await anywhere.work()
    anywhere.store.release(42, "1.1", notes="Tea for two.", at=anywhere.now() - timedelta(hours=3))
    await anywhere.work(A_WHILE)
    await anywhere.to_appstore(product, signed)
    await anywhere.to_appstore(product, again)
    await anywhere.work(A_WHILE)
    (activity,) = await anywhere.activity(product)
    assert "1.1" in activity.title
    assert {sighting.event for sighting in activity.sightings} == {"lookup", "ready_for_distribution"}


async def test_an_app_that_a_country_does_not_have_is_said_so(place: Place) -> None:
    product = await place.a_product()
    place.store.release(42, "1.0", country="de")
    await place.connections.connect_appstore("ada", product.id, "42", "us")
    assert await place.poll(product, "appstore") == "failed: the App Store of US does not have this app"


async def test_the_app_store_answers_403_to_too_many_requests(place: Place) -> None:
    product = await place.a_product()
    await place.connections.connect_appstore("ada", product.id, "42")
    place.store.faults.limit(on="/lookup")
    with pytest.raises(RetryLater):
        await place.poll(product, "appstore")


async def test_connections_are_polled_at_different_minutes(place: Place) -> None:
    minutes = set()
    for number in range(1, 21):
        product = await place.a_product()
        await place.connections.connect_appstore("ada", product.id, str(number))
        schedule = await place.t.schedules.get("ada", poll_key(product.id, "appstore"))
        assert schedule is not None
        assert schedule.next_fire_at is not None
        minutes.add((schedule.next_fire_at - place.clock.now_ms()) // 60_000)
    assert len(minutes) > 6
    assert max(minutes) < 30


async def test_what_is_not_connected_any_more_is_not_polled(place: Place) -> None:
    product = await place.a_product()
    await place.a_repository(product)
    await place.work()
    place.github.calls.clear()
    await place.connections.disconnect("ada", product.id, "github")
    assert await place.poll(product) == "nothing to do: it is not connected any more"
    assert await place.polling.poll("eve", product.id, "github") == "nothing to do: it is not connected any more"
    await place.work(timedelta(hours=1))
    assert not place.github.calls


async def test_a_poll_does_not_write_on_a_connection_that_was_made_anew_meanwhile(place: Place) -> None:
    product = await place.a_product()
    _, _, token = await place.a_repository(product)
    other = place.github.add_repository("ada/kettle")

    async def connect_another() -> None:
        await place.connections.connect_github("ada", product.id, token, "ada/kettle")

    place.github.faults.call_while_taking(connect_another, on="/teapot/releases")
    await place.poll(product)
    connection = await place.db.get(Connection.key.id(product.id, "github"))
    assert connection is not None
    assert (connection.external_id, connection.etags, connection.polled_at) == (str(other.id), {}, MISSING)
