"""What the local Threads takes as a post: containers first, which become posts once."""

from __future__ import annotations

import itertools
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import msgspec

from slothpost.networks.threads_answers import Status
from slothpost.standins.graph_answers import NO_SUCH_ID, GraphFault, invalid
from slothpost.standins.local_post import LocalPost
from slothpost.standins.rate_window import RateWindow
from slothpost.text.check import check_text

CONTAINER_LIFETIME = timedelta(days=1)
DAY = timedelta(days=1)
POSTS_OF_USER = 250  # in 24 hours
DUPLICATES = timedelta(days=1)  # how long the same text counts as a duplicate
MAX_LINKS = 5
MAX_TOPIC = 50

DUPLICATE = GraphFault(code=506, message="Duplicate status message", user_message="You have posted this already.")
QUOTA_SPENT = GraphFault(code=4, message="Application request limit reached", subcode=2207042)


class Container(msgspec.Struct, kw_only=True):
    """A post that is prepared. `error` says why it cannot become one."""

    id: str
    handle: str
    text: str
    topic_tag: str | None
    at: datetime
    polls_left: int
    error: str | None = None
    post: LocalPost | None = None


class ThreadsPosts:
    """`polls_until_ready` is how often a new container is in progress when it is asked for, `unready_publishes` how often
    publishing does not find it; `next_error` is what the next container fails with.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.polls_until_ready = 0
        self.unready_publishes = 0
        self.next_error: str | None = None
        self.quota_size = POSTS_OF_USER
        self.containers: dict[str, Container] = {}
        self.posts: list[LocalPost] = []
        self._quotas: dict[str, RateWindow] = {}
        self._numbers = itertools.count(17_890_000_000_000_001)

    def prepare(self, handle: str, form: Mapping[str, str]) -> Container | GraphFault:
        refused = _refused(form)
        if refused is not None:
            return refused
        id = str(next(self._numbers))
        container = Container(
            id=id,
            handle=handle,
            text=form["text"],
            topic_tag=form.get("topic_tag") or None,
            at=self._now(),
            polls_left=self.polls_until_ready,
            error=self.next_error,
        )
        self.next_error = None
        self.containers[id] = container
        return container

    def status(self, id: str, handle: str) -> tuple[Status, str | None] | GraphFault:
        """Return the status of a container of an account, and its error."""
        container = self.containers.get(id)
        if container is None or container.handle != handle:
            is_post = any(post.id == id for post in self.posts)
            return invalid("Tried accessing nonexisting field (status)") if is_post else NO_SUCH_ID
        if container.post is not None:
            return "PUBLISHED", None
        if container.error is not None:
            return "ERROR", container.error
        if self._now() >= container.at + CONTAINER_LIFETIME:
            return "EXPIRED", None
        container.polls_left -= 1
        return ("IN_PROGRESS" if container.polls_left >= 0 else "FINISHED"), None

    def publish(self, id: str, handle: str, site: str) -> LocalPost | GraphFault:
        """Make a container visible: once, however often this is asked for."""
        container = self.containers.get(id)
        if container is None or container.handle != handle:
            return NO_SUCH_ID
        if container.post is not None:
            return container.post
        if self.unready_publishes:
            self.unready_publishes -= 1
            return NO_SUCH_ID
        if self.status(id, handle) != ("FINISHED", None):
            return NO_SUCH_ID
        now = self._now()
        if any(post.handle == handle and post.text == container.text and post.at > now - DUPLICATES for post in self.posts):
            return DUPLICATE
        quota = self._quota(handle)
        if not quota.remaining(now):
            return QUOTA_SPENT
        quota.add(now)
        container.post = self._post(container, now, site)
        self.posts.append(container.post)
        return container.post

    def quota_usage(self, handle: str) -> int:
        return self._quota(handle).used(self._now())

    def find(self, id: str, handle: str) -> LocalPost | None:
        return next((post for post in self.posts if post.id == id and post.handle == handle), None)

    def put_back(self, post: LocalPost) -> None:
        """Show a post that an earlier stand-in has published. New ones get ids after its own."""
        self.posts.append(post)
        if post.id.isdecimal():
            self._numbers = itertools.count(max(next(self._numbers), int(post.id) + 1))

    def _post(self, container: Container, now: datetime, site: str) -> LocalPost:
        id = str(next(self._numbers))
        code = urlsafe_b64encode(int(id).to_bytes(8, "big")).rstrip(b"=").decode()
        url = f"{site}/@{container.handle}/post/{code}"
        return LocalPost(id=id, handle=container.handle, text=container.text, at=now, url=url, topic_tag=container.topic_tag)

    def _quota(self, handle: str) -> RateWindow:
        quota = self._quotas.setdefault(handle, RateWindow(self.quota_size, DAY))
        quota.size = self.quota_size
        return quota


def _refused(form: Mapping[str, str]) -> GraphFault | None:
    text, topic = form.get("text", ""), form.get("topic_tag", "")
    if form.get("media_type") != "TEXT":
        return invalid("Param media_type must be one of {TEXT, IMAGE, VIDEO, CAROUSEL}", "The local Threads takes texts only.")
    if not text.strip():
        return invalid("The parameter text is required")
    check = check_text("threads", text)
    if check.length > check.limit:
        return invalid(f"Param text must be at most {check.limit} characters long.")
    if len(set(check.links)) > MAX_LINKS:
        return invalid("THREADS_API__LINK_LIMIT_EXCEEDED", f"A post can have {MAX_LINKS} links at most.")
    if len(topic) > MAX_TOPIC or set(topic) & {".", "&"}:
        return invalid(
            "Param topic_tag is invalid", f"A topic has 1 to {MAX_TOPIC} characters, and neither a dot nor an ampersand."
        )
    return None
