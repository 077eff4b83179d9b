"""Reading what GitHub sends: which events are news, and what is kept of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slothpost.activity.happening import Commit, PullRequest, Release, Stars
from slothpost.sources import github
from slothpost.sources.github import MAX_COMMITS, MAX_PUSH_BYTES
from slothpost.sources.reading import Reading
from slothpost.sources.untrusted import MAX_TEXT, Unreadable
from slothpost.standins.deliveries import Signed
from slothpost.standins.github_repository import LocalRepository, new_sha

NOW = datetime(2027, 3, 1, 8, 0, tzinfo=UTC)
SECRET = "secret"


@pytest.fixture
def repository() -> LocalRepository:
    return LocalRepository("ada/teapot", private=False, now=lambda: NOW)


def read(signed: Signed) -> Reading:
    headers = signed.headers
    return github.read(headers["x-github-event"], headers["x-github-delivery"], headers["content-type"], signed.body)


def changed(signed: Signed, change: Callable[[dict[str, Any]], object]) -> Reading:
    """Read a delivery after a change of its payload."""
    payload = json.loads(signed.body)
    change(payload)
    return read(Signed(signed.headers, json.dumps(payload).encode()))


@pytest.mark.parametrize("is_form", [False, True])
def test_a_push_to_the_default_branch_has_its_commits_in_order(repository: LocalRepository, is_form: bool) -> None:
    shas = [new_sha(), new_sha()]
    signed = repository.pushed(SECRET, "feat: Brew tea", "fix: Ünïcödé & more = better", shas=shas, is_form=is_form, guid="one")
    reading = read(signed)
    assert (reading.delivery, reading.event, reading.subject, reading.ignored) == ("one", "push", str(repository.id), "")
    first, second = reading.happenings
    assert (first.id, second.id) == tuple(f"commit:{sha}" for sha in shas)
    assert second.news == Commit("fix: Ünïcödé & more = better")
    assert (second.at, first.at) == (NOW, NOW - timedelta(milliseconds=1))
    assert second.url == f"https://github.com/ada/teapot/commit/{shas[1]}"
    assert second.is_private is False


def test_what_a_merge_commit_brought_is_told_by_its_pull_request(repository: LocalRepository) -> None:
    reading = read(repository.pushed(SECRET, "wip", "more wip", "Merge pull request #4 from ada/tea\n\nBrew tea"))
    assert [happening.news for happening in reading.happenings] == [Commit("Merge pull request #4 from ada/tea\n\nBrew tea")]


def test_commits_that_were_pushed_before_are_left_out_unless_all_of_them_were(repository: LocalRepository) -> None:
    signed = repository.pushed(SECRET, "feat: One", "feat: Two")

    def one_is_known(payload: dict[str, Any]) -> None:
        payload["commits"][0]["distinct"] = False

    def both_are_known(payload: dict[str, Any]) -> None:
        for commit in payload["commits"]:
            commit["distinct"] = False

    assert [happening.news for happening in changed(signed, one_is_known).happenings] == [Commit("feat: Two")]
    assert len(changed(signed, both_are_known).happenings) == 2, "the branch was fast-forwarded"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda payload: payload.update(ref="refs/heads/tea"), "tea is not the default branch"),
        (lambda payload: payload.update(ref="refs/tags/v1"), "v1 is not the default branch"),
        (lambda payload: payload.update(ref="refs/heads/main/x"), "main/x is not the default branch"),
        (lambda payload: payload.update(deleted=True), "the branch was deleted"),
        (lambda payload: payload.update(commits=[], head_commit=None), "it has no commits"),
    ],
)
def test_a_push_that_is_not_news_says_why(
    repository: LocalRepository, change: Callable[[dict[str, Any]], object], why: str
) -> None:
    reading = changed(repository.pushed(SECRET, "feat: Brew tea"), change)
    assert (reading.happenings, reading.ignored) == ((), why)


def test_a_push_of_thousands_of_commits_fits_into_the_engine(repository: LocalRepository) -> None:
    reading = read(repository.pushed(SECRET, *("feat: Brew\n\n" + "tea \U0001f375" * 2_000 for _ in range(300))))
    assert len(reading.happenings) == MAX_COMMITS
    assert len(msgspec.json.encode(reading.happenings)) <= MAX_PUSH_BYTES


@pytest.mark.parametrize("id", ["main", "", "a" * 39, "A" * 40, "a" * 40 + "#", "../" + "a" * 40])
def test_a_commit_whose_id_is_no_hash_is_not_as_documented(repository: LocalRepository, id: str) -> None:
    with pytest.raises(Unreadable, match="the id of a commit is not a hash"):
        changed(repository.pushed(SECRET, "feat: Brew tea"), lambda payload: payload["commits"][0].update(id=id))


def test_a_merged_pull_request_is_under_the_commit_that_it_became(repository: LocalRepository) -> None:
    sha = new_sha()
    pull = repository.merge("Brew tea on a schedule", "Teapots start by themselves.", labels=["enhancement"], sha=sha)
    (happening,) = read(repository.merged(SECRET, pull)).happenings
    assert happening.id == f"commit:{sha}"
    assert happening.news == PullRequest("Brew tea on a schedule", "Teapots start by themselves.", ("enhancement",))
    assert (happening.at, happening.url) == (NOW, "https://github.com/ada/teapot/pull/1")


def test_a_pull_request_that_is_not_news_says_why(repository: LocalRepository) -> None:
    closed = read(repository.merged(SECRET, repository.close("Never mind")))
    assert closed.ignored == "pull requests are news when they are merged, and this one was closed"
    elsewhere = read(repository.merged(SECRET, repository.merge("Try", into="experiments")))
    assert elsewhere.ignored == "it was merged into experiments, which is not the default branch"
    opened = changed(repository.merged(SECRET, repository.merge("Tea")), lambda payload: payload.update(action="opened"))
    assert opened.ignored == "pull requests are news when they are merged, and this one was opened"


def test_a_published_release_is_news_and_any_other_action_is_not(repository: LocalRepository) -> None:
    release = repository.publish("v1.2.0", "Tea time", "- Brew tea", prerelease=True)
    (happening,) = read(repository.released(SECRET, release)).happenings
    assert happening.id == f"release:{release['id']}"
    assert happening.news == Release("Tea time", "v1.2.0", "- Brew tea", is_prerelease=True)
    for action in ("created", "edited", "deleted", "released", "prereleased"):
        assert read(repository.released(SECRET, release, action)).ignored.startswith("releases are news when they are published")
    draft = changed(repository.released(SECRET, release), lambda payload: payload["release"].update(draft=True))
    assert not draft.happenings


def test_a_release_may_have_neither_name_nor_notes(repository: LocalRepository) -> None:
    (happening,) = read(repository.released(SECRET, repository.publish("v1"))).happenings
    assert happening.news == Release("", "v1")


def test_a_star_is_news_when_it_is_a_milestone(repository: LocalRepository) -> None:
    repository.stars = 98
    assert read(repository.starred(SECRET)).ignored == "99 stars are no milestone"
    (happening,) = read(repository.starred(SECRET)).happenings
    assert (happening.id, happening.news, happening.at) == ("stars:100", Stars(100), NOW)
    taken_back = changed(repository.starred(SECRET), lambda payload: payload.update(action="deleted"))
    assert taken_back.ignored == "a star was taken back"
    assert not read(repository.event(SECRET, "watch", action="started")).happenings, "or every star would count twice"


def test_what_is_in_a_private_repository_is_private(repository: LocalRepository) -> None:
    repository.private = True
    for signed in (
        repository.pushed(SECRET, "feat: Brew tea"),
        repository.merged(SECRET, repository.merge("Tea")),
        repository.released(SECRET, repository.publish("v1")),
    ):
        assert [happening.is_private for happening in read(signed).happenings] == [True]


def test_a_ping_and_an_unknown_event_are_read_also_without_a_repository(repository: LocalRepository) -> None:
    assert read(repository.ping(SECRET)).is_ping
    assert read(repository.ping(SECRET)).subject == str(repository.id)
    of_organization = changed(repository.ping(SECRET), lambda payload: payload.pop("repository"))
    assert (of_organization.is_ping, of_organization.subject) == (True, None)
    assert read(repository.event(SECRET, "sponsorship")).ignored == "nothing is made of this event"


def test_what_others_wrote_is_cut_and_has_no_control_characters_and_no_foreign_addresses(repository: LocalRepository) -> None:
    pull = repository.merge("T" * 5_000, "\x00\x1b[31m" + "b" * 50_000, labels=["l" * 500] * 100)
    pull["html_url"] = "javascript:alert(1)"
    (happening,) = read(repository.merged(SECRET, pull)).happenings
    assert isinstance(happening.news, PullRequest)
    assert len(happening.news.title) <= 300
    assert len(happening.news.body) <= MAX_TEXT
    assert happening.news.body.startswith("[31m")
    assert len(happening.news.labels) == 20
    assert happening.url is None


def test_a_long_or_unusual_id_of_a_delivery_becomes_its_digest(repository: LocalRepository) -> None:
    for guid in ("x" * 500, "a b", "ü", "a#b"):
        assert len(read(repository.pushed(SECRET, "feat: Tea", guid=guid)).delivery) == 40


@pytest.mark.parametrize("body", [b"", b"payload", b"other=1", b"payload=1&payload=2", b"payload=%ff", "payload=ü".encode()])
def test_a_form_that_is_none_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        github.read("push", "one", "application/x-www-form-urlencoded; charset=utf-8", body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["push", "pull_request", "release", "star", "ping", "issues", ""]),
    st.sampled_from(["ref", "commits", "repository", "action", "pull_request", "release", "head_commit"]),
    JSON,
)
def test_any_json_is_read_or_refused(event: str, name: str, value: object) -> None:
    repository = LocalRepository("ada/teapot", private=False, now=lambda: NOW)
    payload = {**json.loads(repository.pushed(SECRET, "feat: Tea").body), name: value}
    try:
        reading = github.read(event, "one", "application/json", json.dumps(payload).encode())
    except Unreadable:
        return
    assert reading.is_ping or reading.ignored or reading.happenings
