"""The client of Threads. A post is prepared as a container, whose status tells later whether it went out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from urllib.parse import quote, urlencode

import msgspec

from slothpost.model import ChannelName
from slothpost.networks.graph import VERSION, Graph
from slothpost.networks.graph_errors import LIMIT_PAUSE, GraphError
from slothpost.networks.network import (
    KeepContainer,
    Limited,
    NetworkError,
    NotSent,
    Person,
    Publication,
    Published,
    Refused,
    TokenPair,
    TokenRejected,
    Unclear,
)
from slothpost.networks.request import OpenSession
from slothpost.networks.threads_answers import ContainerStatus, Id, Quotas, Status, ThreadsPost, ThreadsPosts, ThreadsUser, Token
from slothpost.networks.token_answer import lifetime_of

SCOPES = "threads_basic,threads_content_publish"
LISTED_POSTS = 25  # among which a post is searched for, if the answer that had its id was lost
FOUND_WITHIN = timedelta(days=2)  # a container can be published for one day


class ThreadsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The app of this installation at Threads, and where Threads is."""

    client_id: str
    client_secret: str
    api_url: str = "https://graph.threads.net"
    authorize_url: str = "https://threads.net/oauth/authorize"
    site_url: str = "https://www.threads.net"
    timeout_s: float = 30.0
    status_polls: int = 5  # until a container is ready: a text is within seconds
    status_pause_s: float = 2.0

    def __repr__(self) -> str:
        return f"<ThreadsSettings of {self.client_id} at {self.api_url}>"


class ThreadsNetwork:
    """Publishes on Threads, and connects accounts with tokens that live 60 days."""

    name: ChannelName = "threads"
    can_resume: bool = True
    refreshes_single_use: bool = False

    def __init__(self, settings: ThreadsSettings, open_session: OpenSession, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._now = now
        self._graph = Graph(settings.api_url, open_session, settings.timeout_s, now)

    async def publish(self, token: str, publication: Publication, keep: KeepContainer) -> Published:
        """Publish the container of an earlier attempt, unless it is out already; or a new one, which is kept first.

        Threads publishes a container once, however often it is asked to. So `Unclear` is resolved by calling this again with the
        container, unless it needs a person.
        """
        container = publication.container
        if container is not None:
            found = await self._resume(token, publication, container)
            if isinstance(found, Published):
                return found
            if found != "FINISHED":
                container = None  # it is not out, and cannot get out any more
        if container is None:
            container = await self._prepare(token, publication, keep)
        return await self._make_visible(token, container, publication, keep)

    def authorize_url(self, *, state: str, redirect_uri: str, code_verifier: str) -> str:
        """Threads knows no PKCE: `code_verifier` is not used."""
        settings = self._settings
        query = {
            "client_id": settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": SCOPES,
            "response_type": "code",
            "state": state,
        }
        return f"{settings.authorize_url}?{urlencode(query, quote_via=quote)}"

    async def exchange(self, code: str, *, redirect_uri: str, code_verifier: str) -> TokenPair:
        """Return a token that lives 60 days, for a code and the token of one hour that it is worth."""
        app = {"client_id": self._settings.client_id, "client_secret": self._settings.client_secret}
        form = {**app, "code": code.removesuffix("#_"), "grant_type": "authorization_code", "redirect_uri": redirect_uri}
        short = await self._graph.read(self._graph.post("oauth/access_token", form), Token)
        return await self._long_lived(
            "access_token", "th_exchange_token", short.access_token, client_secret=self._settings.client_secret
        )

    async def refresh(self, tokens: TokenPair) -> TokenPair:
        """Return a token for 60 more days. Threads refuses if this one is younger than a day, or expired."""
        return await self._long_lived("refresh_access_token", "th_refresh_token", tokens.access)

    async def whoami(self, token: str) -> Person:
        user = await self._graph.read(self._graph.fields(token, "me", "id", "username"), ThreadsUser)
        return Person(user.id, user.username)

    async def _long_lived(self, path: str, grant_type: str, token: str, **secret: str) -> TokenPair:
        query = {"grant_type": grant_type, "access_token": token, **secret}
        issued = await self._graph.read(self._graph.get(path, query), Token)
        return TokenPair(access=issued.access_token, refresh=None, lifetime=lifetime_of(issued.expires_in))

    async def _resume(self, token: str, publication: Publication, container: str) -> Published | Status:
        """Return what became of an earlier attempt: the post, or the status of a container that is not out.

        As long as that is not known, nothing may be said to be safe, so that nobody changes the post meanwhile.
        """
        try:
            found = await self._settled_status(token, container)
            if isinstance(found, GraphError):
                return await self._find_unknown(token, publication, found)
        except (TokenRejected, Unclear):
            raise
        except NetworkError as error:
            detail = f"Threads could not be asked what became of an earlier attempt: {error}"
            raise Unclear(detail, needs_person=isinstance(error, Refused)) from None
        if found.status == "PUBLISHED":
            return await self._find_published(token, publication, container)
        return found.status

    async def _prepare(self, token: str, publication: Publication, keep: KeepContainer) -> str:
        """Return a new container that is kept and ready."""
        await self._check_quota(token, publication.remote_user)
        container = await self._create(token, publication, keep)
        found = await self._settled_status(token, container)
        if isinstance(found, GraphError):
            raise NotSent(f"Threads does not find the post that it has just prepared: {found.said}")
        if found.status == "ERROR":
            raise Refused(f"Threads could not prepare the post: {found.error_message or 'it does not say why'}")
        return container

    async def _check_quota(self, token: str, user: str) -> None:
        request = self._graph.fields(token, f"{_segment(user)}/threads_publishing_limit", "quota_usage", "config")
        for quota in (await self._graph.read(request, Quotas)).data:
            total = quota.config.quota_total
            if quota.quota_usage >= total:
                raise Limited(f"Threads takes no more than {total} posts in 24 hours", self._now() + LIMIT_PAUSE)

    async def _create(self, token: str, publication: Publication, keep: KeepContainer) -> str:
        topic = {} if publication.topic_tag is None else {"topic_tag": publication.topic_tag}
        form = {"media_type": "TEXT", "text": publication.text, **topic, "access_token": token}
        request = self._graph.post(f"{VERSION}/{_segment(publication.remote_user)}/threads", form)
        container = (await self._graph.read(request, Id)).id
        await keep(container)
        return container

    async def _settled_status(self, token: str, container: str) -> ContainerStatus | GraphError:
        """Return the status of a container, or the error that Threads does not know it, once that stays so."""
        request = self._graph.fields(token, _segment(container), "status", "error_message")
        for polls_left in reversed(range(self._settings.status_polls)):
            found = await self._graph.ask(request, ContainerStatus)
            if isinstance(found, GraphError):
                if not found.is_unknown_id:
                    raise self._graph.meaning(found, request)
                is_settled = not polls_left
            else:
                is_settled = found.status != "IN_PROGRESS"
            if is_settled:
                return found
            await asyncio.sleep(self._settings.status_pause_s)
        raise NotSent("Threads is still working on the post")

    async def _make_visible(self, token: str, container: str, publication: Publication, keep: KeepContainer) -> Published:
        """Publish a container that is ready.

        At times Threads does not find one that it has made seconds ago. If that happens to one of an earlier attempt, it is lost
        for good; so a new one is prepared for the next attempt.
        """
        form = {"creation_id": container, "access_token": token}
        request = self._graph.post(f"{VERSION}/{_segment(publication.remote_user)}/threads_publish", form, acts=True)
        published = await self._graph.ask(request, Id)
        if not isinstance(published, GraphError):
            return await self._look_up(token, published.id, publication)
        if not published.is_missing_container:
            raise self._graph.meaning(published, request)
        if container == publication.container:
            await self._create(token, publication, keep)
        raise NotSent(f"Threads does not find the post that it has prepared: {published.said}")

    async def _look_up(self, token: str, media: str, publication: Publication) -> Published:
        """Return a post that is out, whatever goes wrong here: at worst without its own address."""
        try:
            post = await self._graph.read(self._graph.fields(token, _segment(media), "id", "permalink"), ThreadsPost)
        except NetworkError:
            return Published(media, self._profile(publication))
        return Published(media, post.address or self._profile(publication))

    async def _find_published(self, token: str, publication: Publication, container: str) -> Published:
        """Return the post that a published container has become; if it is not found, the container in its place."""
        try:
            found = await self._find(token, publication)
        except NetworkError:
            found = None
        return found or Published(container, self._profile(publication))

    async def _find_unknown(self, token: str, publication: Publication, error: GraphError) -> Published:
        """Return the post of a container that Threads does not know any more. It may have become that post, or be lost.

        An older post with the same text is another one.
        """
        found = await self._find(token, publication, since=self._now() - FOUND_WITHIN)
        if found is None:
            detail = f"Threads no longer knows the post that it prepared, and does not list it either: {error.said}"
            raise Unclear(detail, needs_person=True)
        return found

    async def _find(self, token: str, publication: Publication, since: datetime | None = None) -> Published | None:
        """Look for the text among the latest posts: Threads does not tell which post a container has become."""
        path = f"{_segment(publication.remote_user)}/threads"
        request = self._graph.fields(token, path, "id", "text", "permalink", "timestamp", limit=str(LISTED_POSTS))
        for post in (await self._graph.read(request, ThreadsPosts)).data:
            is_same = post.text.strip() == publication.text.strip()
            if is_same and (since is None or post.is_after(since)):
                return Published(post.id, post.address or self._profile(publication))
        return None

    def _profile(self, publication: Publication) -> str:
        return f"{self._settings.site_url}/@{quote(publication.handle)}"


def _segment(id: str) -> str:
    """Return an id as a segment of a path."""
    return quote(id, safe="")
