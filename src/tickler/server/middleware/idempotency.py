"""`Idempotency-Key`: a POST or PATCH that is sent twice, since nobody knew whether the first one arrived, is done once."""

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
from tickler.server.middleware.caller import ADMITTED, NOBODY, caller_of
from tickler.server.problems import Refused

ANSWER_RETENTION_MS = 24 * 3_600_000
RUNNING_MS = 10 * 60_000  # after that, whoever was at it is gone
EXTEND_S = 200.0  # until then they say again that they are not
MAX_ANSWER_BYTES = 40_000  # what is larger is not kept, and says so
KEPT_HEADERS = (b"content-type", b"content-length", b"etag", b"tickler-removed")

_KEY = re.compile(r"[!-~]{1,200}")
_PATCHED = re.compile(r"/v1/schedules/[^/]+/[^/]+")

log = logging.getLogger("tickler.server")


class _StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a request under its key."""

    state: Literal["running", "done"]
    request: str  # a fingerprint
    status: int = 0
    headers: dict[str, str] = {}
    body: str | None = None  # base64


class Idempotency:
    """An ASGI app around another: answers again what was answered before."""

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
            raise Refused(
                400, "give one idempotency key of 1 to 200 letters, digits and signs, without spaces", "idempotency-key"
            )
        await self._once(scope, receive, send, keys[0])

    async def _once(self, scope: Any, receive: Receive, send: Send, key: str) -> None:
        body = await _whole(receive)
        who = caller_of(scope)
        name = _digest(who.token_id or "", key)
        fingerprint = _digest(scope["method"], scope["path"], scope["query_string"].decode("latin-1"), body.hex())
        held = _Held(self._records, self._clock, name)
        running = _StoredAnswer(state="running", request=fingerprint)
        try:
            await held.put(running, RUNNING_MS)
        except VersionConflict:
            await self._again(name, fingerprint, send)
            return
        answer = _Answer()
        extending = asyncio.create_task(_extend(held, running))
        try:
            await self._app(scope, _replayed(body, receive), answer)
        finally:
            extending.cancel()
            if answer.whole:  # or else nobody knows what was done, and nobody does it again until all hope is lost
                await _keep(held, running, answer, is_admitted=ADMITTED in scope)
        for message in answer.messages:
            await send(message)

    async def _again(self, name: str, fingerprint: str, send: Send) -> None:
        record = await self._records.get(IDEMPOTENCY, name, now_ms=self._clock.now_ms())
        if record is None:
            raise Refused(409, "the first request with this key has just failed: send it again")
        kept = value_of(record, _StoredAnswer)
        if kept is None:
            raise Refused(409, "the first request with this key went to a newer version of the service: ask that one")
        if kept.request != fingerprint:
            raise Refused(422, "this key was used for another request: choose a new one", "idempotency-key")
        if kept.state == "running":
            raise Refused(409, "the first request with this key is still running: wait", headers={"retry-after": "1"})
        if kept.body is None:
            raise Refused(409, "the first request with this key was done, but its answer was too large to be kept")
        await send(
            {
                "type": "http.response.start",
                "status": kept.status,
                "headers": [
                    *((name.encode(), value.encode("latin-1")) for name, value in kept.headers.items()),
                    (b"idempotent-replayed", b"true"),
                ],
            }
        )
        await send({"type": "http.response.body", "body": base64.b64decode(kept.body), "more_body": False})


class _Held:
    """The record of a key, as long as it is ours: once it has expired, another may have begun anew."""

    def __init__(self, records: RecordStore, clock: Clock, name: str) -> None:
        self._records = records
        self._clock = clock
        self._name = name
        self._version = self._until = 0
        self._one_at_a_time = asyncio.Lock()

    async def put(self, kept: _StoredAnswer, for_ms: int) -> None:
        """`VersionConflict` when it is another's. For no time at all: let go of it.

        Whoever is cancelled meanwhile leaves it to be written, so that what is known of the version stays true.
        """
        await asyncio.shield(self._put(kept, for_ms))

    async def _put(self, kept: _StoredAnswer, for_ms: int) -> None:
        async with self._one_at_a_time:
            await self._write(kept, for_ms)

    async def _write(self, kept: _StoredAnswer, for_ms: int) -> None:
        now_ms = self._clock.now_ms()
        expected, until = self._version if now_ms < self._until else 0, now_ms + for_ms
        value = msgspec.json.encode(kept)
        self._version = await self._records.put(
            IDEMPOTENCY, self._name, value, now_ms=now_ms, expires_at=until, expected=expected
        )
        self._until = until


async def _extend(held: _Held, running: _StoredAnswer) -> None:
    """As long as it runs."""
    while True:
        await asyncio.sleep(EXTEND_S)
        try:
            await held.put(running, RUNNING_MS)
        except VersionConflict:
            return
        except TicklerError as error:
            log.debug("that a request still runs could not be said: %s", error)


async def _keep(held: _Held, running: _StoredAnswer, answer: _Answer, *, is_admitted: bool) -> None:
    """What failed here, or came while another was at it, may be tried again; what was refused stays refused.

    Whoever was not let in leaves nothing behind.
    """
    body = bytes(answer.body)
    done = _StoredAnswer(
        state="done",
        request=running.request,
        status=answer.status,
        headers=answer.headers,
        body=base64.b64encode(body).decode() if len(body) <= MAX_ANSWER_BYTES else None,
    )
    try:
        is_over = answer.status < 500 and answer.status != 409 and is_admitted
        await (held.put(done, ANSWER_RETENTION_MS) if is_over else held.put(running, 0))
    except TicklerError as error:  # it was done, which whoever asked has to know
        log.warning("what was done under an idempotency key could not be remembered: %s", error)


class _Answer:
    """Holds an answer back until it is remembered: whoever has it and asks again gets the same."""

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
                name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"] if name in KEPT_HEADERS
            }
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
            self.whole = not message.get("more_body", False)
        self.messages.append(message)


def _keys(scope: Any) -> list[str]:
    """None where there is nothing to do once: nobody's requests leave nothing behind, and an import may be repeated as it is."""
    path: str = scope["path"]
    is_patch = scope["method"] == "PATCH" and _PATCHED.fullmatch(path)
    is_post = scope["method"] == "POST" and path.startswith("/v1/") and not path.endswith(":import")
    if not (is_patch or is_post) or caller_of(scope) is NOBODY:
        return []
    return [value.decode("latin-1") for name, value in scope["headers"] if name == b"idempotency-key"]


async def _whole(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message: Any = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body at once, and then whatever comes."""
    messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Any:
        return messages.pop() if messages else await receive()

    return replay


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=20).hexdigest()
