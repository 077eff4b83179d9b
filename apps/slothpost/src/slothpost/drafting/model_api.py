"""One request to the API of a language model. Every failure is a `DrafterFailed` with a sentence that has no secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TypeVar

import aiohttp
import msgspec

from slothpost.drafting.drafter import DrafterFailed
from slothpost.drafting.endpoint import Endpoint
from tickler.errors import AddressRefused

MAX_ANSWER_BYTES = 200_000
CONNECT_TIMEOUT_S = 10.0
MAX_WORDS = 160

OpenSession = Callable[[Endpoint], aiohttp.ClientSession]

_OVERLOADED = 529  # of Anthropic
_KEY_LIKE = re.compile(r"\b(?:sk|key|pk|api)[-_][\w*.-]{6,}|\b[\w-]{32,}\b", re.IGNORECASE)


class _Message(msgspec.Struct):
    message: str = ""


class _Failure(msgspec.Struct):
    error: _Message | str | None = None


A = TypeVar("A")


def decoded(body: bytes, type: type[A], service: str) -> A:
    """Return an answer with the fields that are used; `DrafterFailed` if it is not as the API is documented."""
    try:
        return msgspec.json.decode(body, type=type)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise DrafterFailed(f"{service} answered with something else than its API documents") from None


class ModelApi:
    """Posts JSON to one endpoint. `service` is its name for people."""

    def __init__(self, service: str, endpoint: Endpoint, open_session: OpenSession, timeout_s: float) -> None:
        self._service = service
        self._endpoint = endpoint
        self._open_session = open_session
        self._timeout_s = timeout_s

    async def post(self, path: str, body: object, headers: Mapping[str, str]) -> bytes:
        """Return the body of a successful answer. It takes no longer than the timeout, however slowly the answer comes."""
        try:
            status, answered, body_bytes = await self._answer(path, body, headers)
        except AddressRefused:
            raise DrafterFailed(f"the address of {self._service} is not public, so nothing was sent there") from None
        except TimeoutError:
            raise DrafterFailed(f"{self._service} did not answer within {self._timeout_s:g} s") from None
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL, ValueError):
            raise DrafterFailed(f"{self._service} could not be reached") from None
        except (aiohttp.ClientError, OSError):
            raise DrafterFailed(f"{self._service} broke off its answer, or it was too long") from None
        if len(body_bytes) > MAX_ANSWER_BYTES:
            raise DrafterFailed(f"{self._service} answered with more than {MAX_ANSWER_BYTES // 1000} KB")
        if status != HTTPStatus.OK:
            raise DrafterFailed(self._failure(status, answered, body_bytes))
        return body_bytes

    async def _answer(self, path: str, body: object, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        timeout = aiohttp.ClientTimeout(total=self._timeout_s, connect=min(CONNECT_TIMEOUT_S, self._timeout_s))
        async with (
            self._open_session(self._endpoint) as session,
            session.post(
                self._endpoint.path(path),
                data=msgspec.json.encode(body),
                headers={"content-type": "application/json", "accept": "application/json", **headers},
                allow_redirects=False,
                timeout=timeout,
            ) as response,
        ):
            answer = bytearray()
            while len(answer) <= MAX_ANSWER_BYTES and (chunk := await response.content.read(MAX_ANSWER_BYTES)):
                answer += chunk
            return response.status, {name.lower(): value for name, value in response.headers.items()}, bytes(answer)

    def _failure(self, status: int, headers: Mapping[str, str], body: bytes) -> str:
        name, words = self._service, self._words(body)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return f"{name} does not accept the key: check it in the settings"
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            wait = headers.get("retry-after", "").strip()
            until = f" for {wait} s" if wait.isdecimal() and len(wait) < 7 else " for now"
            return f"{name} takes no more requests{until}{words}"
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return f"{name} is {'overloaded' if status == _OVERLOADED else 'out of order'} (it answered {status})"
        if status == HTTPStatus.NOT_FOUND:
            return f"{name} does not know the model {self._endpoint.model!r}, or its address is wrong{words}"
        if status < HTTPStatus.BAD_REQUEST:
            return f"{name} answered with {status} and no text: check its address"
        return f"{name} refused the request with {status}{words}"

    def _words(self, body: bytes) -> str:
        """Return what the service says, on one line, without anything that looks like a key."""
        try:
            error = msgspec.json.decode(body, type=_Failure).error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return ""
        said = error.message if isinstance(error, _Message) else error or ""
        if self._endpoint.key:
            said = said.replace(self._endpoint.key, "…")
        line = " ".join(_KEY_LIKE.sub("…", said).split())
        return f": {line[:MAX_WORDS].rstrip('.')}" if line.isprintable() and line else ""
