"""What one post tells of, and why there may be nothing to tell."""

from __future__ import annotations

import itertools

import pytest

from slothpost.drafting.choose import Choice, choose
from slothpost.model import Activity, ActivityKind
from tickler.table import MISSING

from .made_requests import a_product, an_activity


def chosen(*activities: Activity, private_names: tuple[str, ...] = (), tells_private: bool = False) -> Choice:
    return choose(activities, product=a_product(tells_private=tells_private), private_names=private_names)


def ids(choice: Choice) -> list[str]:
    return [activity.id for activity in choice.activities]


def test_there_are_activities_or_a_reason_and_never_both() -> None:
    for choice in (chosen(), chosen(an_activity("Add maps")), chosen(an_activity("Bump x", kind="chore", worth=0))):
        assert bool(choice.activities) != bool(choice.nothing)


def test_features_come_first_and_the_order_of_the_candidates_does_not_matter() -> None:
    activities = [
        an_activity("Fix crash on startup", id="fix", kind="fix", worth=56),
        an_activity("Improve search", id="small", worth=48),
        an_activity("Add maps", id="maps", worth=70),
    ]
    assert {tuple(ids(chosen(*order))) for order in itertools.permutations(activities)} == {("maps", "small", "fix")}


def test_chores_are_never_chosen() -> None:
    assert ids(chosen(an_activity("Add maps", id="maps"), an_activity("Bump x", id="bump", kind="chore", worth=0))) == ["maps"]


def test_a_version_is_told_with_the_changes_that_came_before_it_and_not_with_later_ones() -> None:
    choice = chosen(
        an_activity("Version 2.0", id="version", kind="release", worth=77, day=2),
        an_activity("Add maps", id="before", day=1, worth=60),
        an_activity("Add widgets", id="after", day=3, worth=60),
    )
    assert ids(choice) == ["version", "before"]


def test_earlier_versions_and_their_reviews_are_told_along_with_the_latest() -> None:
    choice = chosen(
        an_activity("Version 2.1 in the App Store", id="new", kind="app_release", worth=90, day=5),
        an_activity("Version 2.1", id="tag", kind="release", worth=77, day=6),
        an_activity("Version 2.1 in review at Apple", id="review", kind="app_review", worth=42, day=4),
        an_activity("Version 2.0", id="old", kind="release", worth=77, day=1),
        an_activity("Version 1.1 of cli", id="package", kind="release", worth=57, day=1),
        an_activity("Version 2.2", id="next", kind="release", worth=72, day=8),
    )
    assert choice.activities[0].id == "new"
    assert set(ids(choice)) == {"new", "tag", "review", "old"}


@pytest.mark.parametrize("kind", ["milestone", "app_review"])
def test_milestones_and_reviews_are_told_alone(kind: ActivityKind) -> None:
    choice = chosen(
        an_activity("100 stars on GitHub", id="stars", kind=kind, worth=60), an_activity("Fix it", kind="fix", worth=28)
    )
    assert ids(choice) == ["stars"]


def test_a_milestone_includes_the_smaller_ones() -> None:
    choice = chosen(
        an_activity("25 stars on GitHub", id="25", kind="milestone", worth=47),
        an_activity("50 stars on GitHub", id="50", kind="milestone", worth=53),
    )
    assert ids(choice) == ["50", "25"]


def test_one_post_tells_of_six_changes_at_most() -> None:
    assert len(chosen(*(an_activity(f"Add thing {n}", id=str(n)) for n in range(30))).activities) == 6


def test_older_activity_waits_longer_and_what_is_too_old_is_no_news() -> None:
    choice = chosen(
        an_activity("Add maps", id="old", worth=70, day=-20),
        an_activity("Add widgets", id="new", worth=62),
        an_activity("Add sharing", id="ancient", worth=75, day=-60),
    )
    assert ids(choice) == ["new", "old"]


# --- nothing to tell


def test_nothing_happened() -> None:
    assert chosen().nothing == "since the last post no change, release or deployment was reported"


def test_all_of_it_was_maintenance() -> None:
    chores = [an_activity(f"Bump thing {n}", id=str(n), kind="chore", worth=0) for n in range(7)]
    assert chosen(*chores).nothing == (
        "since the last post there were 7 changes, all of them maintenance: “Bump thing 0”, “Bump thing 1” and 5 more"
    )
    assert chosen(chores[0]).nothing == "since the last post there was 1 change, it was maintenance: “Bump thing 0”"


def test_small_changes_wait_until_three_of_them_make_a_post() -> None:
    small = [an_activity(f"Fix thing {n}", id=str(n), kind="fix", worth=28) for n in range(3)]
    assert chosen(*small[:2]).nothing == (
        "since the last post there were 2 small changes, not enough for a post: “Fix thing 0” and “Fix thing 1”; "
        "they wait for the next one"
    )
    assert chosen(small[0]).nothing.endswith("“Fix thing 0”; it waits for the next one")
    assert len(chosen(*small).activities) == 3


def test_what_another_post_tells_is_worth_one() -> None:
    assert ids(chosen(an_activity("Fix thing", kind="fix", worth=28, x_post="p1"))) == ["0"]


def test_deployments_of_which_nothing_is_known_ask_for_the_repository() -> None:
    deployments = [an_activity("New version is live", id=str(n), kind="deployment", worth=15) for n in range(4)]
    assert "4 deployments, and nothing says what changed: connect the repository" in chosen(*deployments).nothing


# --- private repositories

NAMES = ("acme/plant-core", "plant-core")


BODY = """\
The forecast in plant-core is read every hour.
Reminders come once a day. `plantStore` keeps them.
- Add `userName` to lists"""


def private(title: str, body: str = "") -> Activity:
    return an_activity(title, body=body, is_private=True, url="https://github.com/acme/plant-core/commit/1")


def test_private_activity_loses_its_link_its_code_and_its_names() -> None:
    (told,) = chosen(private("Read reminders from Plant Core in plantStore.load()", BODY), private_names=NAMES).activities
    assert told.url is MISSING
    assert told.title == "Read reminders"
    assert told.body == "Reminders come once a day.\n- Add user name to lists"


@pytest.mark.parametrize("written", ["plant-core", "plant core", "PlantCore", "plant_core", "acme/plant-core", "ACME"])
def test_names_are_found_however_they_are_written(written: str) -> None:
    (told,) = chosen(private(f"Add maps and offline mode to {written}"), private_names=NAMES).activities
    assert told.title == "Add maps and offline mode"


def test_private_activity_of_which_nothing_is_left_is_not_told() -> None:
    choice = chosen(private("Sync plant-core"), private_names=NAMES)
    assert "1 change in private repositories, and nothing of that can be told without their names" in choice.nothing


def test_names_that_everybody_knows_are_told() -> None:
    names = ("acme/plantlog", "plantlog", "acme/app", "app")
    (told,) = chosen(private("Add Plantlog widgets to the app"), private_names=names).activities
    assert told.title == "Add Plantlog widgets to the app"


def test_a_product_that_tells_what_is_private_keeps_everything() -> None:
    activity = private("Add maps to plant-core")
    assert chosen(activity, private_names=NAMES, tells_private=True).activities == (activity,)


def test_public_activity_keeps_its_link() -> None:
    activity = an_activity("Add maps", url="https://github.com/acme/plant/commit/1")
    assert chosen(activity).activities == (activity,)
