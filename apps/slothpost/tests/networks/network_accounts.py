"""Accounts of the local networks, as the clients see them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import aiohttp

from slothpost.networks.network import Publication, Published, TokenPair
from slothpost.networks.threads import ThreadsNetwork, ThreadsSettings
from slothpost.networks.x import XNetwork, XSettings
from slothpost.standins.local_post import user_id
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn

TEXT = "Tea timers now survive a restart."


class XAccount:
    """An account of the local X, as the client sees it."""

    def __init__(self, x: XStandIn, now: Callable[[], datetime], settings: XSettings) -> None:
        self.x = x
        self.network = XNetwork(settings, aiohttp.ClientSession, now)
        self.tokens: TokenPair = x.issue_tokens("ada")

    async def publish(self, text: str = TEXT) -> Published:
        publication = Publication(text=text, remote_user=user_id("ada"), handle="ada")
        return await self.network.publish(self.tokens.access, publication, _nothing_to_keep)

    @property
    def publish_calls(self) -> int:
        return self.x.calls.count("POST /2/tweets")


class ThreadsAccount:
    """An account of the local Threads, as the client sees it. It remembers the last container that was kept."""

    def __init__(self, threads: ThreadsStandIn, now: Callable[[], datetime], settings: ThreadsSettings) -> None:
        self.threads = threads
        self.network = ThreadsNetwork(settings, aiohttp.ClientSession, now)
        self.tokens: TokenPair = threads.issue_tokens("ada")
        self.container: str | None = None
        self.posts_when_kept: list[int] = []

    async def publish(self, text: str = TEXT, topic_tag: str | None = None) -> Published:
        """Publish, or go on with the container of an earlier attempt."""
        publication = Publication(
            text=text, remote_user=user_id("ada"), handle="ada", topic_tag=topic_tag, container=self.container
        )
        return await self.network.publish(self.tokens.access, publication, self._keep)

    async def _keep(self, container: str) -> None:
        self.container = container
        self.posts_when_kept.append(len(self.threads.posts))

    @property
    def publish_calls(self) -> int:
        return sum(call.endswith("/threads_publish") for call in self.threads.calls)


async def _nothing_to_keep(container: str) -> None:
    raise AssertionError("X has no containers")
