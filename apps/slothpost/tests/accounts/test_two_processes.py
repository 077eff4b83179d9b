"""Two processes that need the token of one account at the same time."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from slothpost.accounts.account_changes import LEASE
from slothpost.model import Account
from tickler import ManualClock

from .desk import Desk

SCRIPT = Path(__file__).parent / "refreshing_process.py"
TOKEN = "/2/oauth2/token"  # the path


async def in_another_process(desk: Desk, store: str, account: Account) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        store,
        desk.now().isoformat(),
        desk.x.url,
        account.id,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        output, _ = await process.communicate()
    return output.decode().strip()


async def test_one_of_two_processes_refreshes(desk: Desk, sqlite_url: str, clock: ManualClock) -> None:
    account = await desk.connections.add("ada", "x", desk.x.issue_tokens("ada"))
    clock.advance(timedelta(hours=1, minutes=56))
    hold = desk.x.faults.hold(on=TOKEN)
    other = asyncio.create_task(in_another_process(desk, sqlite_url, account))
    async with asyncio.timeout(60):
        await hold.arrived.wait()
    assert (await desk.stored(account)).refreshing_until == desk.now() + LEASE
    assert (await in_another_process(desk, sqlite_url, account)) == f"busy until {(desk.now() + LEASE).isoformat()}"
    hold.release()
    token = await other
    assert await desk.tokens.get(await desk.stored(account)) == token
    assert desk.x.calls.count(f"POST {TOKEN}") == 1
    assert (await desk.networks["x"].whoami(token)).handle == "ada"
