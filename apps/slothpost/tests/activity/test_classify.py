"""What is news and what is maintenance, and how much it is worth."""

from __future__ import annotations

import pytest

from slothpost.activity.classify import Classified, classify, classify_stars
from slothpost.activity.happening import AppVersion, Commit, Deployment, PullRequest, Release, Stars
from slothpost.model import ActivityKind

FEATURES = """
feat: add dark mode -> Add dark mode
feat(ios): widgets for the lock screen -> Widgets for the lock screen on iOS
feat!: new sync engine -> New sync engine
Feature: import from Notion -> Import from Notion
[Feature] Offline maps -> Offline maps
settings: remember last tab -> Remember last tab
✨ Add widgets -> Add widgets
:sparkles: reading streaks -> Reading streaks
🚀 Launch public beta -> Launch public beta
Add offline support for maps (#123) -> Add offline support for maps
Added CSV export -> Added CSV export
Users can now share lists -> Users can now share lists
Introduce teams -> Introduce teams
Speed up photo upload -> Speed up photo upload
perf: load the garden list twice as fast -> Load the garden list twice as fast
Show watering history on the plant page -> Show watering history on the plant page
Redesign the home screen -> Redesign the home screen
Add approval workflow -> Add approval workflow
Add comments to recipes -> Add comments to recipes
Add practice tests for level 2 -> Add practice tests for level 2
Add workout log -> Add workout log
Pin favourite plants to the top -> Pin favourite plants to the top
feat: sitemap generator -> Sitemap generator
Add formatting toolbar -> Add formatting toolbar
"""

FIXES = """
fix: crash when opening empty lists -> Fix crash when opening empty lists
fix(android): keyboard covers the save button -> Fix keyboard covers the save button on Android
🐛 streak resets at midnight -> Fix streak resets at midnight
Fix: the list was empty after login -> Fix the list was empty after login
Fixed a bug where reminders fired twice -> Fixed a bug where reminders fired twice
Prevent duplicate reminders -> Prevent duplicate reminders
Don't lose drafts when offline -> Don't lose drafts when offline
Don't lose annotations when a song is renamed -> Don't lose annotations when a song is renamed
Handle empty lists -> Handle empty lists
fix: show the right total -> Show the right total
fix(ui): loosen the limit on names -> Loosen the limit on names
Hotfix login on Safari -> Hotfix login on Safari
"""

CHORES = """
chore: release 1.2
chore(deps): bump lodash
Bump eslint from 8 to 9
Update dependency react to v19
build(deps-dev): bump the npm group with 3 updates
Update Rust crate serde to 1.0.200
Lock file maintenance
fix(deps): update dependency next to v15
fix: upgrade golang.org/x/crypto to 0.52.0 (CVE-2026-39829)
Merge branch 'main' into dev
Merge remote-tracking branch 'origin/main'
Merge pull request #12 from foo/bar
Revert "Add dark mode"
revert: add dark mode
WIP
wip: new onboarding
[WIP] Import from Notion
fixup! Add dark mode
refactor: extract PlantService
Refactor plant list
style: run prettier
🎨 Format code
⬆️ Upgrade dependencies
♻️ Simplify stores
docs: explain the API
📝 Update README
Update README.md
Fix typo in README
Fix typos
test: cover reminders
Add tests for parser
Add unit tests
Fix flaky test
Fix tests on CI
ci: cache browsers
Add CI workflow
feat(ci): add release workflow
Fix build
Fix lint errors
Fix type errors
Remove unused imports
Remove console.log
Add logging
Add Sentry
Add sitemap
Rename variable
Move files
Update packages
Use new API client
Switch to Postgres
Cleanup
Small fixes
Minor tweaks
fix
fixes
update
asdf
.
Initial commit
Version 1.2.0
v1.4.2
1.4.2
Release v1.4.0
Prepare release 2.0.0
Address review comments
Apply suggestions from code review
Deploy to production
Trigger build
Pin version of node
Set up project
UI fixes
Composer tweaks
Update translations
Italian localization fix
Add GitHub Actions workflow
Add pre-commit hooks
Add feature flag for widgets
"""


def pairs(lines: str) -> list[tuple[str, str]]:
    return [(before, after) for before, _, after in (line.partition(" -> ") for line in lines.strip().splitlines())]


@pytest.mark.parametrize(("message", "title"), pairs(FEATURES))
def test_what_users_can_see_is_a_feature(message: str, title: str) -> None:
    seen = classify(Commit(message))
    assert (seen.kind, seen.title) == ("feature", title)
    assert seen.worth >= 40


@pytest.mark.parametrize(("message", "title"), pairs(FIXES))
def test_what_users_no_longer_suffer_from_is_a_fix(message: str, title: str) -> None:
    seen = classify(Commit(message))
    assert (seen.kind, seen.title) == ("fix", title)
    assert 0 < seen.worth < 70


@pytest.mark.parametrize("message", CHORES.strip().splitlines())
def test_maintenance_is_never_told(message: str) -> None:
    seen = classify(Commit(message))
    assert (seen.kind, seen.worth) == ("chore", 0)
    assert seen.title


@pytest.mark.parametrize("message", ["", "\n\n", "   ", "#", "🎉", "\x00", "fix:", "feat: ", ":bug:", "Closes #12", "a" * 5000])
def test_messages_without_words_are_never_told(message: str) -> None:
    assert classify(Commit(message)).worth == 0


def worth(message: str) -> int:
    return classify(Commit(message)).worth


def test_features_are_worth_more_than_improvements_and_those_more_than_fixes() -> None:
    assert worth("feat: dark mode") > worth("Improve search") > worth("Fix crash on startup") > worth("Fix the layout") > 0


def test_a_fix_is_worth_a_post_if_people_have_noticed_it_or_its_author_explains_it() -> None:
    assert worth("Fix crash on startup") >= 40
    assert worth("Fix sync\n\nThe list was stale for an hour after somebody had edited it on another device.") >= 40
    assert worth("Fix sync of lists") < 40


def test_small_and_technical_changes_are_worth_less() -> None:
    assert 0 < worth("Add padding to cards") < 40
    assert 0 < worth("Handle null in the parser") < 20
    assert worth("feat: add user_id to getPlants()") < worth("feat: add plant names")
    assert worth("Remove ads") < 40


def test_a_title_without_a_verb_is_worth_little_as_a_commit_and_a_post_as_a_pull_request_that_is_explained() -> None:
    assert 0 < worth("Plant detail page") < 40
    assert classify(PullRequest("Plant detail page", "All that is known about a plant has a place of its own now.")).worth >= 40


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (("enhancement",), "feature"),
        (("bug",), "fix"),
        (("dependencies",), "chore"),
        (("Documentation",), "chore"),
        (("v2",), "feature"),
    ],
)
def test_labels_of_pull_requests_say_what_they_are(labels: tuple[str, ...], kind: ActivityKind) -> None:
    assert classify(PullRequest("Reminders on the watch", labels=labels)).kind == kind


def test_the_merge_commit_of_a_pull_request_is_told_by_its_title() -> None:
    seen = classify(Commit("Merge pull request #5 from acme/dark\n\nAdd dark mode"))
    assert (seen.kind, seen.title) == ("feature", "Add dark mode")


def test_the_body_of_a_commit_is_kept_for_people() -> None:
    message = "Add dark mode\n\nThe colors follow the system.\n\nSigned-off-by: Ada <ada@example.com>\nCloses #12"
    assert classify(Commit(message)).body == "The colors follow the system."


@pytest.mark.parametrize(
    ("release", "title"),
    [
        (Release("v1.4.0", "v1.4.0", "- Dark mode"), "Version 1.4"),
        (Release("", "1.4.1"), "Version 1.4.1"),
        (Release("Trailkit 2.0 – Offline maps", "v2.0.0"), "Version 2.0: Offline maps"),
        (Release("v2.0.0: Offline maps", "v2.0.0"), "Version 2.0: Offline maps"),
        (Release("Spring update", "v12"), "Version 12: Spring update"),
        (Release("", "2.0.0-beta.2", is_prerelease=True), "Version 2.0 beta 2"),
        (Release("", "@acme/cli@1.2.0"), "Version 1.2 of cli"),
        (Release("Summer edition", "summer"), "Summer edition"),
    ],
)
def test_releases_have_the_version_that_people_say(release: Release, title: str) -> None:
    seen = classify(release)
    assert (seen.kind, seen.title) == ("release", title)
    assert seen.worth >= 40


@pytest.mark.parametrize("tag", ["nightly", "nightly-2027-01-01", "latest", "v2.0.0-canary.3", "continuous", "1.0.0-dev.5"])
def test_builds_that_are_not_for_users_are_never_told(tag: str) -> None:
    assert classify(Release("", tag)).worth == 0


def test_a_version_with_notes_is_worth_more_than_one_without_and_a_patch_less() -> None:
    noted, plain, patch, beta = (
        classify(each).worth
        for each in (Release("", "v2.1.0", "- Maps"), Release("", "v2.1.0"), Release("", "v2.1.1"), Release("", "v2.1", "", True))
    )
    assert noted > plain > patch > beta >= 40


@pytest.mark.parametrize(
    ("state", "kind", "title", "is_told"),
    [
        ("READY_FOR_DISTRIBUTION", "app_release", "Version 2.3 in the App Store", True),
        ("IN_REVIEW", "app_review", "Version 2.3 in review at Apple", True),
        ("IN_BETA_TESTING", "app_review", "Beta of version 2.3 with testers", True),
        ("BETA_APPROVED", "app_review", "Beta of version 2.3 with testers", True),
        ("REJECTED", "chore", "Version 2.3: rejected", False),
        ("PREPARE_FOR_SUBMISSION", "chore", "Version 2.3: prepare for submission", False),
    ],
)
def test_versions_of_an_app_are_told_when_people_get_them(state: str, kind: ActivityKind, title: str, is_told: bool) -> None:
    seen = classify(AppVersion("2.3.0", state, "- Dark mode"))
    assert (seen.kind, seen.title, seen.body, seen.worth > 0) == (kind, title, "- Dark mode", is_told)


def test_a_version_of_which_the_number_is_not_known_is_a_new_one() -> None:
    assert classify(AppVersion("", "READY_FOR_DISTRIBUTION")).title == "A new version in the App Store"
    assert classify(AppVersion("", "IN_REVIEW")).title == "A new version in review at Apple"


def test_a_deployment_is_told_as_its_commit_and_without_one_as_little() -> None:
    assert classify(Deployment("feat: add maps")) == classify(Commit("feat: add maps"))
    assert classify(Deployment(None)) == Classified("deployment", "New version is live", "", 15)


@pytest.mark.parametrize("count", [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000])
def test_round_numbers_of_stars_are_milestones(count: int) -> None:
    seen = classify_stars(count)
    assert seen == classify(Stars(count))
    assert seen is not None
    assert (seen.kind, seen.title) == ("milestone", f"{count:,} stars on GitHub")
    assert 40 <= seen.worth <= 95


@pytest.mark.parametrize("count", [0, 1, 9, 11, 75, 101, 999, 1_001, 20_000])
def test_other_numbers_of_stars_are_none(count: int) -> None:
    assert classify_stars(count) is None
    assert classify(Stars(count)).worth == 0
