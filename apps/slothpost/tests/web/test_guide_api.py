"""The script of the guide, against a real server."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from api_client import tokens_of

from installation import Installation
from slothpost.serving import serve
from tickler.web import listen

SCRIPT = Path(__file__).parents[4] / "examples" / "slothpost_week.py"


@pytest.fixture
async def address(here: Installation) -> AsyncIterator[str]:
    with closing(listen("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(serve(here.app, listening, works=False))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        signal.raise_signal(signal.SIGTERM)
        await serving


async def test_the_script_of_the_guide_plans_writes_and_approves(here: Installation, address: str) -> None:
    token = await tokens_of(here.app).issue(await here.a_user(), "guide", writes=True)
    environ = {**os.environ, "SLOTHPOST_URL": address, "SLOTHPOST_TOKEN": token}
    ran = await asyncio.create_subprocess_exec(sys.executable, str(SCRIPT), env=environ, stdout=asyncio.subprocess.PIPE)
    said = (await ran.communicate())[0].decode().splitlines()
    assert ran.returncode == 0
    assert said == [
        "drafts next at 2027-03-01T20:00:00Z and posts at 2027-03-02T08:00:00Z",
        "422 days.mon.enabled mon.enabled is an unknown field: a day is on when it has a 'time', and off when that is null",
        "2027-03-02T08:00:00Z 33 of 280 Tea timers now survive a restart.",
        "approved 2027-03-02T08:00:00Z no account is connected to this channel",
    ]
