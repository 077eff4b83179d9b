"""Reads what GitHub sends and answers: pushes, merged pull requests, releases and stars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from urllib.parse import parse_qsl

import msgspec

from slothpost.activity.classify import classify_stars
from slothpost.activity.happening import ActivityId, Commit, Happening, PullRequest, Release, Stars
from slothpost.sources import untrusted
from slothpost.sources.reading import Reading
from slothpost.sources.untrusted import Unreadable, decoded

MAX_COMMITS = 100
MAX_LABELS = 20
MAX_NAME = 140  # owner/name
MAX_PUSH_BYTES = 200_000  # the engine takes payloads of 256 KB
_SHORTER = (untrusted.MAX_TEXT, 500, 100)  # characters of a commit message, until a push fits: the last always does

_MERGE = "Merge pull request #"
_FORM = "application/x-www-form-urlencoded"


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    full_name: str
    private: bool
    default_branch: str = "main"
    stargazers_count: int = 0
    pushed_at: datetime | int | None = None  # seconds in pushes, a text elsewhere


class PushedCommit(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    message: str
    url: str | None = None
    distinct: bool = True


class Push(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    repository: Repository
    deleted: bool = False
    commits: Sequence[PushedCommit] = ()
    head_commit: PushedCommit | None = None


class Label(msgspec.Struct, frozen=True):
    name: str


class BaseRepository(msgspec.Struct, frozen=True):
    id: int
    private: bool
    default_branch: str = "main"


class Base(msgspec.Struct, frozen=True):
    """What a pull request is merged into."""

    ref: str
    repo: BaseRepository | None = None


class PullRequestObject(msgspec.Struct, frozen=True, kw_only=True):
    """In a delivery, and in lists of the API."""

    number: int
    title: str
    body: str | None = None
    merged_at: datetime | None = None
    updated_at: datetime | None = None
    merge_commit_sha: str | None = None
    html_url: str | None = None
    labels: Sequence[Label] = ()
    base: Base


class PullRequestEvent(msgspec.Struct, frozen=True, kw_only=True):
    action: str
    pull_request: PullRequestObject
    repository: Repository


class ReleaseObject(msgspec.Struct, frozen=True, kw_only=True):
    """In a delivery, and in lists of the API."""

    id: int
    tag_name: str
    name: str | None = None
    body: str | None = None
    draft: bool = False
    prerelease: bool = False
    html_url: str | None = None
    published_at: datetime | None = None


class ReleaseEvent(msgspec.Struct, frozen=True, kw_only=True):
    action: str
    release: ReleaseObject
    repository: Repository


class StarEvent(msgspec.Struct, frozen=True, kw_only=True):
    action: str
    starred_at: datetime | None = None
    repository: Repository


class Id(msgspec.Struct, frozen=True):
    id: int


class About(msgspec.Struct, frozen=True):
    """The part that every event has, unless it is one of an organization."""

    repository: Id | None = None

    @property
    def subject(self) -> str | None:
        return None if self.repository is None else str(self.repository.id)


def read(event: str, delivery: str, content_type: str, body: bytes) -> Reading:
    """Read a verified delivery. `Unreadable` if its body is not JSON, or not as GitHub documents."""
    json = _form_payload(body) if content_type.partition(";")[0].strip().lower() == _FORM else body
    reading = _READERS.get(event, _other)(json)
    return msgspec.structs.replace(
        reading, event=reading.event or untrusted.line(event, 60), delivery=untrusted.short_name(delivery)
    )


def pull_request(merged: PullRequestObject, *, repository: str, is_private: bool) -> Happening:
    """A merged pull request, under the id of the commit that it became."""
    return Happening(
        id=untrusted.commit_id(merged.merge_commit_sha) or ActivityId(f"pull_request:{merged.number}"),
        event="pull_request",
        news=PullRequest(
            untrusted.text(merged.title, 300),
            untrusted.text(merged.body),
            tuple(untrusted.line(label.name, 50) for label in merged.labels[:MAX_LABELS]),
        ),
        at=untrusted.instant(merged.merged_at),
        url=untrusted.web_address(merged.html_url),
        is_private=is_private,
        repository_name=_name(repository),
    )


def release(published: ReleaseObject, *, repository: str, is_private: bool) -> Happening:
    return Happening(
        id=ActivityId(f"release:{published.id}"),
        event="release",
        news=Release(
            untrusted.line(published.name),
            untrusted.line(published.tag_name),
            untrusted.text(published.body),
            published.prerelease,
        ),
        at=untrusted.instant(published.published_at),
        url=untrusted.web_address(published.html_url),
        is_private=is_private,
        repository_name=_name(repository),
    )


def stars(repository: Repository, at: datetime | None) -> Happening:
    return Happening(
        id=ActivityId(f"stars:{repository.stargazers_count}"),
        event="star",
        news=Stars(repository.stargazers_count),
        at=untrusted.instant(at),
        is_private=repository.private,
        repository_name=_name(repository.full_name),
    )


def _form_payload(body: bytes) -> str:
    try:
        fields = parse_qsl(body.decode("ascii"), strict_parsing=True, max_num_fields=10, errors="strict")
    except ValueError:
        raise Unreadable("the body is not a form") from None
    payloads = [value for name, value in fields if name == "payload"]
    if len(payloads) != 1:
        raise Unreadable("the form has no field `payload`")
    return payloads[0]


def _push(json: bytes | str) -> Reading:
    push = decoded(json, Push)
    repository = push.repository
    if push.ref != f"refs/heads/{repository.default_branch}":
        return _ignored(repository, f"{_shown(push.ref)} is not the default branch")
    if push.deleted:
        return _ignored(repository, "the branch was deleted")
    commits = _told(push)
    if not commits:
        return _ignored(repository, "it has no commits")
    tried = (_commits(commits, repository, most) for most in _SHORTER)
    fitting = (happenings for happenings in tried if len(msgspec.json.encode(happenings)) <= MAX_PUSH_BYTES)
    return _news(repository, *next(fitting))


def _told(push: Push) -> Sequence[PushedCommit]:
    """Return the commits that are news, the oldest first.

    What came with the merge commit of a pull request is told by the pull request. Commits that were pushed to another branch
    before are left out, unless all of them were: then the branch was fast-forwarded, and this is how they got here.
    """
    head = push.head_commit
    if head is not None and head.message.startswith(_MERGE):
        return [head]
    distinct = [commit for commit in push.commits if commit.distinct]
    return (distinct or push.commits)[-MAX_COMMITS:]


def _commits(commits: Sequence[PushedCommit], repository: Repository, most: int) -> list[Happening]:
    """Return commits as happenings at the time of the push, since they may be much older.

    They are a millisecond apart, which keeps their order.
    """
    pushed_at, name = untrusted.instant(repository.pushed_at), _name(repository.full_name)
    happenings = []
    for number, commit in enumerate(reversed(commits)):
        id = untrusted.commit_id(commit.id)
        if id is None:
            raise Unreadable("the body is not as documented: the id of a commit is not a hash")
        at = None if pushed_at is None else pushed_at - timedelta(milliseconds=number)
        news = Commit(untrusted.text(commit.message, most))
        url = untrusted.web_address(commit.url)
        is_private = repository.private
        happenings.append(Happening(id=id, event="push", news=news, at=at, url=url, is_private=is_private, repository_name=name))
    return happenings[::-1]


def _pull_request(json: bytes | str) -> Reading:
    event = decoded(json, PullRequestEvent)
    request = event.pull_request
    if event.action != "closed" or request.merged_at is None:
        return _ignored(event.repository, f"pull requests are news when they are merged, and this one was {_shown(event.action)}")
    if request.base.ref != event.repository.default_branch:
        return _ignored(event.repository, f"it was merged into {_shown(request.base.ref)}, which is not the default branch")
    repository = event.repository
    return _news(repository, pull_request(request, repository=repository.full_name, is_private=repository.private))


def _release(json: bytes | str) -> Reading:
    event = decoded(json, ReleaseEvent)
    if event.action != "published" or event.release.draft:
        return _ignored(event.repository, f"releases are news when they are published, and this one was {_shown(event.action)}")
    repository = event.repository
    return _news(repository, release(event.release, repository=repository.full_name, is_private=repository.private))


def _star(json: bytes | str) -> Reading:
    event = decoded(json, StarEvent)
    if event.action != "created":
        return _ignored(event.repository, "a star was taken back")
    if classify_stars(event.repository.stargazers_count) is None:
        return _ignored(event.repository, f"{event.repository.stargazers_count:,} stars are no milestone")
    return _news(event.repository, stars(event.repository, event.starred_at))


def _ping(json: bytes | str) -> Reading:
    return Reading(subject=decoded(json, About).subject, is_ping=True)


def _other(json: bytes | str) -> Reading:
    return Reading(subject=decoded(json, About).subject, ignored="nothing is made of this event")


def _news(repository: Repository, *happenings: Happening) -> Reading:
    return Reading(subject=str(repository.id), happenings=happenings)


def _ignored(repository: Repository, why: str) -> Reading:
    return Reading(subject=str(repository.id), ignored=why)


def _name(repository: str) -> str:
    return untrusted.line(repository, MAX_NAME)


def _shown(name: str) -> str:
    return untrusted.line(name.removeprefix("refs/heads/").removeprefix("refs/tags/"), 60)


_READERS: Mapping[str, Callable[[bytes | str], Reading]] = {
    "push": _push,
    "pull_request": _pull_request,
    "release": _release,
    "star": _star,  # and not `watch`, which comes for each star, too
    "ping": _ping,
}
