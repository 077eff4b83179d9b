"""`Idempotency-Key`: executes a POST or PATCH once, even if a client sends it again."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
from typing import Any, Literal

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from tickler.clock import Clock
from tickler.errors import TicklerError, VersionConflict
from tickler.model.record import value_of
from tickler.records.contract import RecordStore
from tickler.records.kinds import IDEMPOTENCY
from tickler.server.middleware.caller import ADMITTED, ANONYMOUS, caller_in
from tickler.web.body_limits import body_chunks
from tickler.web.problems import Refused

MAX_KEY_LENGTH = 200
RESPONSE_RETENTION_MS = 24 * 3_600_000
LOCK_MS = 10 * 60_000  # an unextended lock expires after this
EXTEND_S = 200.0  # interval at which a running request extends its lock
MAX_RESPONSE_BYTES = 40_000  # larger responses are not stored; a repeat gets 409
STORED_HEADERS = (b"content-type", b"content-length", b"etag", b"tickler-removed")

_KEY = re.compile(rf"[!-~]{{1,{MAX_KEY_LENGTH}}}")
_SCHEDULE_PATH = re.compile(r"/v1/schedules/[^/]+/[^/]+")

log = logging.getLogger("tickler.server")


class _StoredResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a key, and its response once it is done."""

    state: Literal["running", "done"]
    request: str  # a fingerprint
    status: int = 0
    headers: dict[str, str] = {}
    body: str | None = None  # base64


class Idempotency:
    """ASGI middleware that stores responses by idempotency key and replays them."""

    def __init__(self, app: ASGIApp, records: RecordStore, clock: Clock) -> None:
        self._app = app
        self._records = records
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        keys = _keys(scope) if scope["type"] == ScopeType.HTTP else []
        if not keys:
            await self._app(scope, receive, send)
            return
        if len(keys) > 1 or not _KEY.fullmatch(keys[0]):
            raise Refused(400, f"give one idempotency key of 1 to {MAX_KEY_LENGTH} visible ASCII characters", "idempotency-key")
        await self._execute(scope, receive, send, keys[0])

    async def _execute(self, scope: Any, receive: Receive, send: Send, key: str) -> None:
        body = b"".join([chunk async for chunk in body_chunks(receive)])
        name = _digest(caller_in(scope).token_id or "", key)
        fingerprint = _digest(scope["method"], scope["path"], scope["query_string"].decode("latin-1"), body.hex())
        lock = _Lock(self._records, self._clock, name)
        running = _StoredResponse(state="running", request=fingerprint)
        try:
            await lock.put(running, LOCK_MS)
        except VersionConflict:
            await self._replay(name, fingerprint, send)
            return
        response = _Response()
        extending = asyncio.create_task(_extend(lock, running))
        try:
            await self._app(scope, _receive_again(body, receive), response)
        finally:
            extending.cancel()
            if response.whole:  # otherwise the outcome is unknown: the key stays locked until it expires
                await _store(lock, running, response, is_admitted=ADMITTED in scope)
        for message in response.messages:
            await send(message)

    async def _replay(self, name: str, fingerprint: str, send: Send) -> None:
        record = await self._records.get(IDEMPOTENCY, name, now_ms=self._clock.now_ms())
        if record is None:
            raise Refused(409, "the first request with this key has just failed: send it again")
        stored = value_of(record, _StoredResponse)
        if stored is None:
            raise Refused(409, "the first request with this key was answered by a newer version of the service: send it there")
        if stored.request != fingerprint:
            raise Refused(422, "this key was used for a different request: choose a new one", "idempotency-key")
        if stored.state == "running":
            raise Refused(409, "the first request with this key is still running: wait", headers={"retry-after": "1"})
        if stored.body is None:
            raise Refused(409, "the first request with this key was done, but its response was too large to store")
        headers = [(name.encode(), value.encode("latin-1")) for name, value in stored.headers.items()]
        headers.append((b"idempotent-replayed", b"true"))
        await send({"type": "http.response.start", "status": stored.status, "headers": headers})
        await send({"type": "http.response.body", "body": base64.b64decode(stored.body), "more_body": False})


class _Lock:
    """The record of a key. Once it has expired, another request may take it over."""

    def __init__(self, records: RecordStore, clock: Clock, name: str) -> None:
        self._records = records
        self._clock = clock
        self._name = name
        self._version = self._until = 0
        self._mutex = asyncio.Lock()

    async def put(self, value: _StoredResponse, for_ms: int) -> None:
        """Write the record; `for_ms=0` releases it. `VersionConflict` if another request holds it.

        Cancellation does not interrupt the write, so that the known version stays right.
        """
        await asyncio.shield(self._put(value, for_ms))

    async def _put(self, value: _StoredResponse, for_ms: int) -> None:
        async with self._mutex:
            now_ms = self._clock.now_ms()
            expected, until = self._version if now_ms < self._until else 0, now_ms + for_ms
            encoded = msgspec.json.encode(value)
            self._version = await self._records.put(
                IDEMPOTENCY, self._name, encoded, now_ms=now_ms, expires_at=until, expected=expected
            )
            self._until = until


async def _extend(lock: _Lock, running: _StoredResponse) -> None:
    """Extend the lock until cancelled."""
    while True:
        await asyncio.sleep(EXTEND_S)
        try:
            await lock.put(running, LOCK_MS)
        except VersionConflict:
            return
        except TicklerError as error:
            log.debug("cannot extend an idempotency lock: %s", error)


async def _store(lock: _Lock, running: _StoredResponse, response: _Response, *, is_admitted: bool) -> None:
    """Store a final response. After a 5xx, a 409 or a rejected caller, release the key, so that it can be retried."""
    body = bytes(response.body)
    done = _StoredResponse(
        state="done",
        request=running.request,
        status=response.status,
        headers=response.headers,
        body=base64.b64encode(body).decode() if len(body) <= MAX_RESPONSE_BYTES else None,
    )
    try:
        is_final = response.status < 500 and response.status != 409 and is_admitted
        await (lock.put(done, RESPONSE_RETENTION_MS) if is_final else lock.put(running, 0))
    except TicklerError as error:  # it was done all the same: answer the caller
        log.warning("idempotent response lost: %s", error)


class _Response:
    """Buffers a response until it is stored, so that a client that has it gets the same again."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.status = 500
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.whole = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"] if name in STORED_HEADERS
            }
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
            self.whole = not message.get("more_body", False)
        self.messages.append(message)


def _keys(scope: Any) -> list[str]:
    """Return the keys to apply: none for unknown callers, who must not fill the store, nor for imports, which are repeatable."""
    path: str = scope["path"]
    is_patch = scope["method"] == "PATCH" and _SCHEDULE_PATH.fullmatch(path)
    is_post = scope["method"] == "POST" and path.startswith("/v1/") and not path.endswith(":import")
    if not (is_patch or is_post) or caller_in(scope) is ANONYMOUS:
        return []
    return [value.decode("latin-1") for name, value in scope["headers"] if name == b"idempotency-key"]


def _receive_again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the whole body, then what follows."""
    messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Any:
        return messages.pop() if messages else await receive()

    return replay


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=20).hexdigest()
