"""Clients of the local networks, which wait for less than half a second."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from slothpost.networks.threads import ThreadsSettings
from slothpost.networks.x import XSettings
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn

from .network_accounts import ThreadsAccount, XAccount

TIMEOUT_S = 1.0


@pytest.fixture
def x_settings(x: XStandIn) -> XSettings:
    return XSettings(
        client_id=x.client_id,
        client_secret=x.client_secret,
        api_url=x.url,
        authorize_url=f"{x.url}/i/oauth2/authorize",
        site_url=x.url,
        timeout_s=TIMEOUT_S,
    )


@pytest.fixture
def threads_settings(threads: ThreadsStandIn) -> ThreadsSettings:
    return ThreadsSettings(
        client_id=threads.client_id,
        client_secret=threads.client_secret,
        api_url=threads.url,
        authorize_url=f"{threads.url}/oauth/authorize",
        site_url=threads.url,
        timeout_s=TIMEOUT_S,
        status_polls=3,
        status_pause_s=0.0,
    )


@pytest.fixture
def on_x(x: XStandIn, now: Callable[[], datetime], x_settings: XSettings) -> XAccount:
    return XAccount(x, now, x_settings)


@pytest.fixture
def on_threads(threads: ThreadsStandIn, now: Callable[[], datetime], threads_settings: ThreadsSettings) -> ThreadsAccount:
    return ThreadsAccount(threads, now, threads_settings)
