"""Serves a program that stands in a guide, on a port that it writes to standard output: `serve.py PROGRAM SERVER [fail-once]`.

With `fail-once`, the first good answer becomes a 500 after the program has done its work, as if the answer had been lost.
Ends when standard input does, which is when the process that started it ends.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from wsgiref.simple_server import make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from werkzeug.serving import make_server as make_werkzeug_server

HOST = "127.0.0.1"


class WsgiFailsOnce:
    def __init__(self, app: WSGIApplication) -> None:
        self._app = app
        self._has_failed = False

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *exc_info: object) -> object:
            if status.startswith("2") and not self._has_failed:
                self._has_failed = True
                status = "500 Internal Server Error"
            return start_response(status, headers, *exc_info)  # type: ignore[arg-type]  # passed on as they came

        return self._app(environ, start)  # type: ignore[arg-type]  # what it returns is passed on too


class AsgiFailsOnce:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._has_failed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_or_fail(message: Message) -> None:
            if message["type"] == "http.response.start" and 200 <= message["status"] < 300 and not self._has_failed:
                self._has_failed = True
                message = {**message, "status": 500}
            await send(message)

        await self._app(scope, receive, send_or_fail)


def serve_werkzeug(app: WSGIApplication) -> None:
    server = make_werkzeug_server(HOST, 0, app, threaded=True)
    say(server.server_port)
    server.serve_forever()


def serve_wsgiref(app: WSGIApplication) -> None:
    server = make_server(HOST, 0, app)
    say(server.server_port)
    server.serve_forever()


def serve_uvicorn(app: ASGIApp) -> None:
    listening = socket.create_server((HOST, 0))
    say(listening.getsockname()[1])
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


def say(port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main(program: str, server: str, *options: str) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.path.insert(0, os.getcwd())
    app = import_module(Path(program).stem).app
    fails = "fail-once" in options
    if server == "uvicorn":
        serve_uvicorn(AsgiFailsOnce(app) if fails else app)
    else:
        serve = {"werkzeug": serve_werkzeug, "wsgiref": serve_wsgiref}[server]
        serve(WsgiFailsOnce(app) if fails else app)


if __name__ == "__main__":
    main(*sys.argv[1:])
