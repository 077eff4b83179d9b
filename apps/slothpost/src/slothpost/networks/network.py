"""What a network is to slothpost: it takes a post at most once, and says what became of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from slothpost.model import ChannelName


class Published(msgspec.Struct, frozen=True):
    """A post that is out: its id on the network, and the address where people see it."""

    remote_id: str
    url: str


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """What to post, and for whom. `container` is what an earlier attempt stored, if it did."""

    text: str
    remote_user: str  # the network's id of the account
    handle: str
    topic_tag: str | None = None
    container: str | None = None


class TokenPair(msgspec.Struct, frozen=True, kw_only=True):
    """What a network issued. A lifetime of None: it does not expire."""

    access: str
    refresh: str | None
    lifetime: timedelta | None

    def __repr__(self) -> str:
        return "<TokenPair>"  # tokens are for no log


class Person(msgspec.Struct, frozen=True):
    """Whose account it is."""

    remote_id: str
    handle: str


class NetworkError(Exception):
    """A post is not out, or perhaps is. `str` of it is a sentence for people, with the network's own words."""


class Refused(NetworkError):
    """The network does not take this post, now or later. Nothing is out."""

    def __init__(self, detail: str, *, is_duplicate: bool = False) -> None:
        super().__init__(detail)
        self.is_duplicate = is_duplicate  # the network says that it has the same text already


class TokenRejected(NetworkError):
    """The account must be connected again. Nothing is out."""


class Limited(NetworkError):
    """Too many posts, or no credit left. Nothing is out; try again at `until`."""

    def __init__(self, detail: str, until: datetime) -> None:
        super().__init__(detail)
        self.until = until


class NotSent(NetworkError):
    """The network was not reached, or failed where nothing can have gone out. It is safe to try again."""


class Unclear(NetworkError):
    """The request was sent, and no answer says what became of it. Never send it again without asking a person.

    `needs_person`: also a network that can resume will not find out by itself.
    """

    def __init__(self, detail: str, *, needs_person: bool = False) -> None:
        super().__init__(detail)
        self.needs_person = needs_person


KeepContainer = Callable[[str], Awaitable[None]]


class Network(Protocol):
    """A client of one network. `publish` calls the network's own publishing request at most once.

    `keep` stores what makes a later attempt safe, before the request that makes the post visible: Threads has a container, X has
    nothing. Every error is one of those above. With a container of an earlier attempt, `Unclear` also means that the network
    could not be asked what became of it.
    """

    name: ChannelName
    can_resume: bool  # whether a second attempt can find out what became of the first
    refreshes_single_use: bool  # whether a refresh token works once, and its replay ends the account

    async def publish(self, token: str, publication: Publication, keep: KeepContainer) -> Published: ...

    def authorize_url(self, *, state: str, redirect_uri: str, code_verifier: str) -> str: ...

    async def exchange(self, code: str, *, redirect_uri: str, code_verifier: str) -> TokenPair: ...

    async def refresh(self, tokens: TokenPair) -> TokenPair: ...

    async def whoami(self, token: str) -> Person: ...


Networks = Mapping[ChannelName, Network]
