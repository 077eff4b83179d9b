"""One activity from several sightings, in whichever order they come."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from functools import reduce

import pytest

from slothpost.activity.app_releases import MAX_RELEASES, placed
from slothpost.activity.merge import is_private, merged
from slothpost.model import Activity, ActivityKind, Sighting, Source
from slothpost.model.connection import AppRelease
from tickler.table import MISSING, evolve

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


def seen(
    source: Source, event: str, title: str, kind: ActivityKind = "feature", *, minutes: int = 0, private: bool | None = False
) -> Activity:
    sighting = Sighting(source=source, event=event, delivery=f"{source}-{event}", is_private=private)
    return Activity(
        product="p1",
        id="commit:1",
        at=NOON + timedelta(minutes=minutes),
        kind=kind,
        title=title,
        body=f"body of {event}",
        url=MISSING if event == "deployment" else f"https://example.com/{event}",
        is_private=is_private([sighting]),
        worth=len(title),
        sightings=[sighting],
    )


DEPLOYED = seen("vercel", "deployment", "New version is live", "deployment", minutes=5, private=None)
PROMOTED = seen("vercel", "deployment.promoted", "Brew tea (#4)", minutes=6, private=None)
PUSHED = seen("github", "push", "Brew tea", "chore", minutes=1)
MERGED = seen("github", "pull_request", "Brew tea on a schedule")


@pytest.mark.parametrize("order", list(itertools.permutations([DEPLOYED, PROMOTED, PUSHED, MERGED])))
def test_the_order_of_sightings_does_not_matter(order: tuple[Activity, ...]) -> None:
    activity = reduce(merged, order)
    assert (activity.title, activity.kind, activity.body, activity.worth) == (MERGED.title, "feature", MERGED.body, MERGED.worth)
    assert (activity.at, activity.url, activity.is_private) == (NOON, "https://example.com/pull_request", False)
    assert len(activity.sightings) == 4


@pytest.mark.parametrize("order", list(itertools.permutations([DEPLOYED, PROMOTED, PUSHED])))
def test_a_push_knows_more_than_a_deployment(order: tuple[Activity, ...]) -> None:
    activity = reduce(merged, order)
    assert (activity.title, activity.kind, activity.at) == ("Brew tea", "chore", NOON + timedelta(minutes=1))


def test_what_was_seen_before_changes_nothing() -> None:
    activity = reduce(merged, [PUSHED, MERGED])
    assert merged(activity, PUSHED) is activity
    again = evolve(MERGED, title="Edited since", sightings=[evolve(MERGED.sightings[0], delivery="another")])
    assert merged(activity, again) is activity


def test_what_a_post_uses_stays_used() -> None:
    used = evolve(PUSHED, x_post="post-1", threads_post="post-2")
    activity = merged(used, MERGED)
    assert (activity.title, activity.x_post, activity.threads_post) == (MERGED.title, "post-1", "post-2")


@pytest.mark.parametrize(
    ("said", "private"),
    [
        ([True, False], True),
        ([False, True, None], True),
        ([None, None], True),
        ([None, False], False),
        ([False], False),
        ([], True),
    ],
)
def test_it_is_private_if_anybody_says_so_or_nobody_says_otherwise(said: list[bool | None], private: bool) -> None:
    sightings = [Sighting(source="github", event=str(n), delivery="d", is_private=each) for n, each in enumerate(said)]
    assert is_private(sightings) is private


def test_a_private_sighting_makes_a_public_activity_private_for_good() -> None:
    private = seen("vercel", "deployment.promoted", "Brew tea", private=True)
    for order in itertools.permutations([private, PUSHED, MERGED]):
        assert reduce(merged, order).is_private


def release(activity: str, days: float, *, instance: str = "", version: str = "") -> AppRelease:
    return AppRelease(activity=activity, at=NOON + timedelta(days=days), instance=instance, version=version)


def test_the_halves_of_a_release_find_each_other_in_either_order() -> None:
    webhook, lookup = release("version:i1", 0, instance="i1"), release("version:1.1", -1, version="1.1")
    for first, second in ((webhook, lookup), (lookup, webhook)):
        id, releases = placed([], first)
        assert id == first.activity
        id, releases = placed(releases, second)
        assert id == first.activity
        assert [(each.instance, each.version) for each in releases] == [("i1", "1.1")]
        assert placed(releases, first) == (first.activity, releases)
        assert placed(releases, second) == (first.activity, releases)


def test_two_releases_are_two() -> None:
    _, releases = placed([], release("version:i1", 0, instance="i1"))
    _, releases = placed(releases, release("version:1.1", 0, version="1.1"))
    id, releases = placed(releases, release("version:i2", 1, instance="i2"))
    assert id == "version:i2", "the first is whole"
    id, releases = placed(releases, release("version:1.2", 1.5, version="1.2"))
    assert id == "version:i2"
    id, _ = placed(releases, release("version:1.3", 9, version="1.3"))
    assert id == "version:1.3", "too far from any other"


def test_the_nearest_half_is_the_other() -> None:
    releases = [release("version:i1", 0, instance="i1"), release("version:i2", 2, instance="i2")]
    assert placed(releases, release("version:1.2", 1.9, version="1.2"))[0] == "version:i2"
    assert placed(releases, release("version:1.1", 0.2, version="1.1"))[0] == "version:i1"


def test_so_many_releases_are_remembered() -> None:
    releases: list[AppRelease] = []
    for number in range(MAX_RELEASES + 5):
        _, releases = placed(releases, release(f"version:{number}", number * 30, version=str(number)))
    assert [each.version for each in releases] == [str(number) for number in range(5, MAX_RELEASES + 5)]
