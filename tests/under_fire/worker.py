"""A worker in a process of its own, which prints what it holds: `python -m under_fire.worker URL OPTIONS`.

Every line it prints is one of those below, in JSON, and is out before the worker does anything else: so whoever kills it knows
what it had. Stops on SIGTERM.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import cast

import msgspec

from tickler import Delivery, Outcome, RunOptions, Tickler
from tickler.client import Settings
from tickler.clock import SystemClock
from tickler.connect import store_for_url
from tickler.fires import Claim, Fire, Settlement
from tickler.fires.contract import ClaimRequest, FireStore, LeaseRequest
from tickler.model.fire import Extension, fire_id
from tickler.stores.store import Store
from under_fire.processes import LOOPBACK


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Of a worker, in seconds; the shortest lease there is."""

    in_flight: int = 100
    per_owner: int = 50
    per_host: int = 50
    queued: int = 2_000
    lease: float = 5
    drain: float = 30


class Working(msgspec.Struct, frozen=True, tag=True):
    """The first line: it is connected, and about to work."""


class Claiming(msgspec.Struct, frozen=True, tag=True):
    """It has asked the store for as many as `limit`. Unanswered, it may have any of what was due then."""

    limit: int


class Held(msgspec.Struct, frozen=True):
    id: str
    attempt: int
    owed: bool  # is delivered at least once


class Claimed(msgspec.Struct, frozen=True, tag=True):
    """What the store gave it, for all it asked for."""

    held: list[Held]


class Dispatched(msgspec.Struct, frozen=True, tag=True):
    """An attempt is over, and not settled yet."""

    id: str
    attempt: int
    verdict: str


class Late(msgspec.Struct, frozen=True, tag=True):
    """So many leases were another's when it extended or settled them."""

    number: int


class Said(msgspec.Struct, frozen=True, tag=True):
    """What it logged, from warnings on."""

    text: str


Line = Working | Claiming | Claimed | Dispatched | Late | Said

_encode = msgspec.json.Encoder().encode


def say(line: Line) -> None:
    """In one piece, and at once."""
    left = _encode(line) + b"\n"
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]


class TellingFires:
    """Forwards to the store, and prints what is claimed and leased."""

    def __init__(self, fires: FireStore) -> None:
        self._fires = fires

    def __getattr__(self, name: str) -> object:
        return getattr(self._fires, name)

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        say(Claiming(request.limit))
        return _told(await self._fires.claim(request))

    async def lease(self, request: LeaseRequest) -> list[Claim]:
        claims = await self._fires.lease(request)
        return _told(claims) if claims else claims

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        extension = await self._fires.extend(fires, until_ms)
        _late(extension.lost)
        return extension

    async def settle(self, settlements: Sequence[Settlement], now_ms: int, *, expires_at: int) -> list[Fire]:
        return _late(await self._fires.settle(settlements, now_ms, expires_at=expires_at))


class _TellingStore:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.fires = TellingFires(store.fires)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


class _Saying(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(Said(self.format(record)))


def _told(claims: list[Claim]) -> list[Claim]:
    held = [
        Held(fire_id(claim.schedule.owner, claim.schedule.key, claim.nominal_at), 1, False)
        if claim.fire is None
        else Held(claim.fire.id, claim.fire.attempt, True)
        for claim in claims
    ]
    say(Claimed(held))
    return claims


def _late(fires: list[Fire]) -> list[Fire]:
    if fires:
        say(Late(len(fires)))
    return fires


def _dispatched(delivery: Delivery, outcome: Outcome) -> None:
    say(Dispatched(delivery.id, delivery.attempt, outcome.verdict))


async def run(url: str, options: Options) -> None:
    logging.basicConfig(level=logging.WARNING, handlers=[_Saying()])
    store = cast(Store, _TellingStore(store_for_url(url)))
    settings = Settings(create=False, environ=os.environ, allow_networks=(LOOPBACK,), reopen=lambda: store_for_url(url))
    async with Tickler(store, SystemClock(), settings) as tickler:
        tickler.on_dispatch(_dispatched)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, tickler.stop)
        say(Working())
        await tickler.run(RunOptions(**msgspec.to_builtins(options)))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], msgspec.json.decode(sys.argv[2], type=Options)))
