"""The parts of GitHub's API that slothpost uses, with the fine-grained token of a user."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from slothpost.errors import InvalidField
from slothpost.sources.api import Answer, Api, Call, OpenSession, has_next_page
from slothpost.sources.github import PullRequestObject, ReleaseObject

MAX_PAGES = 10
HOOK_EVENTS = ("push", "pull_request", "release", "star")

T = TypeVar("T")

_FULL_NAME = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")
_HEADERS = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}


class Permissions(msgspec.Struct, frozen=True):
    """What the user may do there."""

    admin: bool = False
    maintain: bool = False
    push: bool = False


class ListedRepository(msgspec.Struct, frozen=True, kw_only=True):
    """A repository as the API describes it to somebody who may see it."""

    id: int
    full_name: str
    private: bool
    default_branch: str = "main"
    stargazers_count: int = 0
    archived: bool = False
    permissions: Permissions = Permissions()

    @property
    def is_writable(self) -> bool:
        return self.permissions.push or self.permissions.maintain or self.permissions.admin


class Hook(msgspec.Struct, frozen=True):
    id: int


class Fetched(msgspec.Struct, Generic[T], frozen=True):
    """A first page that was asked for with an ETag: `found` is None if it has not changed."""

    answer: Answer
    found: T | None


class GithubApi:
    def __init__(self, url: str, open_session: OpenSession, now: Callable[[], datetime]) -> None:
        self._api = Api("GitHub", url, open_session, now, headers=_HEADERS)

    async def repositories(self, token: str) -> list[ListedRepository]:
        """Return the repositories that the user works on and the token may see, the latest pushed first."""
        query = {"affiliation": "owner,collaborator,organization_member", "sort": "pushed", "per_page": "100"}
        found: list[ListedRepository] = []
        for page in range(1, MAX_PAGES + 1):
            answer = await self._api.send(Call(path="/user/repos", token=token, query={**query, "page": str(page)}))
            found += self._api.decode(answer, list[ListedRepository])
            if not has_next_page(answer):
                break
        return [repository for repository in found if not repository.archived]

    async def repository(self, token: str, name: str, etag: str | None = None) -> Fetched[ListedRepository]:
        """Return a repository by its name of now, or by one that it had before."""
        answer = await self._api.send(Call(path=f"/repos/{checked_name(name)}", token=token, etag=etag))
        return self._fetched(answer, ListedRepository)

    async def merged_since(
        self, token: str, name: str, since: datetime, etag: str | None
    ) -> Fetched[Sequence[PullRequestObject]]:
        """Return the pull requests that were merged since an instant."""
        query = {"state": "closed", "sort": "updated", "direction": "desc"}
        fetched = await self._since(
            Call(path=f"/repos/{checked_name(name)}/pulls", token=token, query=query, etag=etag),
            list[PullRequestObject],
            lambda request: request.updated_at is None or request.updated_at >= since,
        )
        if fetched.found is None:
            return fetched
        return Fetched(fetched.answer, [each for each in fetched.found if each.merged_at is not None and each.merged_at >= since])

    async def released_since(self, token: str, name: str, since: datetime, etag: str | None) -> Fetched[Sequence[ReleaseObject]]:
        """Return the releases that were published since an instant."""

        def is_new(release: ReleaseObject) -> bool:
            return not release.draft and release.published_at is not None and release.published_at >= since

        call = Call(path=f"/repos/{checked_name(name)}/releases", token=token, etag=etag)
        fetched = await self._since(call, list[ReleaseObject], is_new)
        return Fetched(fetched.answer, None if fetched.found is None else [each for each in fetched.found if is_new(each)])

    async def create_hook(self, token: str, name: str, *, url: str, secret: str) -> str:
        """Create a webhook, which GitHub pings at once. Returns its id."""
        config = {"url": url, "content_type": "json", "secret": secret, "insecure_ssl": "0"}
        body = {"name": "web", "active": True, "events": list(HOOK_EVENTS), "config": config}
        return str((await self._api.read(Call(path=_hooks(name), method="POST", token=token, json=body), Hook)).id)

    async def delete_hook(self, token: str, name: str, hook: str) -> None:
        await self._api.send(Call(path=f"{_hooks(name)}/{int(hook)}", method="DELETE", token=token))

    async def _since(self, call: Call, kind: type[list[T]], is_recent: Callable[[T], bool]) -> Fetched[Sequence[T]]:
        """Return what pages have, until one has nothing recent. The first is asked for with the ETag, with the same query."""
        query = {**call.query, "per_page": "50"}
        first = await self._api.send(msgspec.structs.replace(call, query=query))
        if first.is_unchanged:
            return Fetched(first, None)
        answer, found = first, self._api.decode(first, kind)
        items = list(found)
        for page in range(2, MAX_PAGES + 1):
            if not has_next_page(answer) or not any(map(is_recent, found)):
                break
            answer = await self._api.send(msgspec.structs.replace(call, query={**query, "page": str(page)}, etag=None))
            found = self._api.decode(answer, kind)
            items += found
        return Fetched(first, items)

    def _fetched(self, answer: Answer, kind: type[T]) -> Fetched[T]:
        return Fetched(answer, None if answer.is_unchanged else self._api.decode(answer, kind))


def checked_name(name: str) -> str:
    """Return the name of a repository, if it can be a part of an address; otherwise `InvalidField`."""
    if not _FULL_NAME.fullmatch(name) or name.split("/")[1] in (".", ".."):
        raise InvalidField("repository", f"{name[:80]!r} is not a repository: choose one of your list, such as ada/teapot")
    return name


def _hooks(name: str) -> str:
    return f"/repos/{checked_name(name)}/hooks"
