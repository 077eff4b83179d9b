"""Publishes what is due at an instant, and kills itself at a point. Run by a test.

Usage: publishing_worker.py SETTINGS INSTANT POINT. SETTINGS is JSON: store, table, x and threads. Ends by itself if it does not
come to the point.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from datetime import datetime, timedelta

from slothpost.app import open_slothpost
from slothpost.networks.threads import ThreadsSettings
from slothpost.networks.x import XSettings
from slothpost.posts.publisher import Point
from slothpost.settings import Settings
from tickler import ManualClock
from tickler.testing import play


async def main(given: str, instant: str, kill_at: str) -> None:
    def at_point(point: Point) -> None:
        if point == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    values = json.loads(given)
    x, threads = XSettings(**values["x"]), ThreadsSettings(**values["threads"])
    clock = ManualClock(datetime.fromisoformat(instant))
    settings = Settings(store=values["store"], table=values["table"], x=x, threads=threads)
    async with open_slothpost(settings, clock=clock, at_point=at_point) as app:
        await play(app.t, clock, until=timedelta(minutes=1))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3]))
