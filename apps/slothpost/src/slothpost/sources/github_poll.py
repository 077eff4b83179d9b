"""Looks at a repository: releases, merged pull requests and stars that no webhook reported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from slothpost.activity.classify import classify_stars
from slothpost.activity.happening import ActivityId, Happening, Stars
from slothpost.model import Connection
from slothpost.sources.api import Answer, poll_interval
from slothpost.sources.github import PullRequestObject, pull_request, release
from slothpost.sources.github_api import GithubApi, ListedRepository
from slothpost.sources.polls import Found, polled_since, with_etags
from slothpost.sources.source_errors import Forbidden, Missing, TokenRejected
from slothpost.sources.source_secrets import SourceSecrets
from tickler.table import MISSING, evolve

MAX_STEPS = 20_000  # between two counts of stars, in search of a milestone

Part = tuple[list[Happening], dict[str, Answer]]  # what happened, and the answers by the names of their ETags


class GithubPoll:
    def __init__(self, api: GithubApi, secrets: SourceSecrets) -> None:
        self._api = api
        self._secrets = secrets

    async def look(self, connection: Connection, now: datetime) -> Found:
        """Ask for the repository, its pull requests and its releases: conditional requests, which are free if nothing changed.

        A part that the token may not read is reported as a problem, and the others are read.
        """
        token = self._secrets.token(connection)
        if token is None or connection.name is MISSING:
            raise TokenRejected("GitHub is connected by its webhook alone: choose the repository to have it polled, too")
        fetched = await self._api.repository(token, connection.name, connection.etags.get("repository"))
        repository = fetched.found
        if repository is not None and str(repository.id) != connection.external_id:
            raise Missing(f"{connection.name} is another repository now: choose yours again")
        happenings: list[Happening] = []
        problems: list[str] = []
        changed = connection
        if repository is not None:
            happenings += _milestones(connection, repository, now)
            changed = evolve(
                connection, name=repository.full_name, is_private=repository.private, stars=repository.stargazers_count
            )
        etags = with_etags(connection.etags, repository=fetched.answer)
        for part in (self._pull_requests, self._releases):
            try:
                found, answers = await part(token, changed, polled_since(connection, now))
            except Forbidden as error:
                problems.append(str(error))
                continue
            happenings += found
            etags = with_etags(etags, **answers)
        return Found(
            connection=evolve(changed, etags=etags),
            happenings=tuple(happenings),
            wait=poll_interval(fetched.answer),
            problem="; ".join(problems),
        )

    async def _pull_requests(self, token: str, connection: Connection, since: datetime) -> Part:
        assert connection.name is not MISSING
        fetched = await self._api.merged_since(token, connection.name, since, connection.etags.get("pulls"))
        told = [each for each in fetched.found or () if _is_of_default_branch(each, connection)]
        merged = [pull_request(each, repository=connection.name, is_private=_is_private(each, connection)) for each in told]
        return merged, {"pulls": fetched.answer}

    async def _releases(self, token: str, connection: Connection, since: datetime) -> Part:
        assert connection.name is not MISSING
        fetched = await self._api.released_since(token, connection.name, since, connection.etags.get("releases"))
        told = fetched.found or ()
        published = [release(each, repository=connection.name, is_private=connection.is_private) for each in told]
        return published, {"releases": fetched.answer}


def _milestones(connection: Connection, repository: ListedRepository, now: datetime) -> Sequence[Happening]:
    """Return the highest milestone that was passed since the stars were counted last; the first count passes none."""
    before, count = connection.stars, repository.stargazers_count
    if before is MISSING:
        return ()
    for number in range(count, max(before, count - MAX_STEPS), -1):
        if classify_stars(number) is not None:
            id = ActivityId(f"stars:{number}")
            news, name = Stars(number), repository.full_name
            return (Happening(id=id, event="star", news=news, at=now, is_private=repository.private, repository_name=name),)
    return ()


def _is_of_default_branch(request: PullRequestObject, connection: Connection) -> bool:
    base = request.base.repo
    return base is not None and str(base.id) == connection.external_id and request.base.ref == base.default_branch


def _is_private(request: PullRequestObject, connection: Connection) -> bool:
    return connection.is_private or (request.base.repo is not None and request.base.repo.private)
