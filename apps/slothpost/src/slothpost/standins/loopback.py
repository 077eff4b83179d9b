"""An HTTP server on the loopback interface, in the process that starts it."""

from __future__ import annotations

import asyncio

from aiohttp import web

HOST = "127.0.0.1"


class Loopback:
    """Serves an application of aiohttp. Answers that are held back end when it stops."""

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._runner: web.AppRunner | None = None
        self.stopping = asyncio.Event()

    async def start(self, app: web.Application) -> str:
        """Return the address that it serves."""
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self._port)
        await site.start()
        return f"http://{HOST}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        self.stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()
