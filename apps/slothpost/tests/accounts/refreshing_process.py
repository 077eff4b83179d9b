"""Asks for the token of an account, and prints it, or until when it is busy. Run by a test beside another process.

Usage: refreshing_process.py STORE INSTANT X_URL ACCOUNT
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime

import aiohttp

import tickler
from slothpost.accounts.access_tokens import AccessTokens, TokenBusy
from slothpost.model import Account, slothpost
from slothpost.networks.x import XNetwork, XSettings
from slothpost.notices import Notices
from slothpost.standins.x import XStandIn


async def main(store: str, instant: str, x_url: str, account_id: str) -> None:
    clock = tickler.ManualClock(datetime.fromisoformat(instant))
    settings = XSettings(client_id=XStandIn.client_id, client_secret=XStandIn.client_secret, api_url=x_url)
    network = XNetwork(settings, aiohttp.ClientSession, lambda: datetime.fromtimestamp(clock.now_ms() / 1000, UTC))
    async with tickler.connect(store, clock=clock) as t, slothpost.connect(t, name="slothpost") as db:
        account = await db.get(Account.key.id("ada", account_id))
        assert account is not None
        try:
            print(await AccessTokens(t, db, {"x": network}, Notices(t, db)).get(account))  # noqa: T201  # its output
        except TokenBusy as busy:
            print(f"busy until {busy.until.isoformat()}")  # noqa: T201  # its output


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
