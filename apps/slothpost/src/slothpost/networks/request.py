"""One HTTP request to a network. It has an answer, or fails as `NotSent` or `Unclear`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Literal

import aiohttp
import msgspec

from slothpost.networks.network import NotSent, Unclear
from tickler.errors import AddressRefused

MAX_ANSWER_BYTES = 256 * 1024
CONNECT_TIMEOUT_S = 10.0

OpenSession = Callable[[], aiohttp.ClientSession]

# After these, not one byte of the request has left: the connection was never made.
_NEVER_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
    AddressRefused,
)
# These answers say that another address is to be asked. Any other of 3xx may follow something that was done.
_REDIRECTS = frozenset(
    {
        HTTPStatus.MOVED_PERMANENTLY,
        HTTPStatus.FOUND,
        HTTPStatus.TEMPORARY_REDIRECT,
        HTTPStatus.PERMANENT_REDIRECT,
    }
)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """`acts`: without an answer, the network may have done something that must not happen twice.

    `fails_safely`: an answer of 5xx is no reason to fear that.
    """

    method: Literal["GET", "POST"]
    url: str
    headers: Mapping[str, str] = {}
    query: Mapping[str, str] = {}
    form: Mapping[str, str] | None = None
    json: Mapping[str, object] | None = None
    acts: bool = False
    fails_safely: bool = False

    def __repr__(self) -> str:
        return f"<{self.method} {self.url}>"  # the rest has tokens

    def lost(self, detail: str) -> NotSent | Unclear:
        """Return the error for a request without an answer that can be relied on."""
        return Unclear(detail) if self.acts else NotSent(detail)


class Answer(msgspec.Struct, frozen=True):
    """Names of headers are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def is_conclusive(self) -> bool:
        """True for what was done or refused, False for what may have been done before something failed."""
        is_refusal = HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR
        return self.is_success or (is_refusal and self.status != HTTPStatus.REQUEST_TIMEOUT)

    def content(self) -> Mapping[str, object]:
        """Return the JSON object of the body; an empty one if it is anything else."""
        try:
            return msgspec.json.decode(self.body, type=dict[str, object])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return {}


class Requests:
    """Sends requests to one network, whose name is for people.

    Each has a connection of its own. On one that was kept open, a request that the other side dropped unread could not be told
    from one that it carried out.
    """

    def __init__(self, network: str, open_session: OpenSession, timeout_s: float) -> None:
        self._network = network
        self._open_session = open_session
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s / 2))

    async def send(self, request: Request) -> Answer:
        """Return an answer with a status of 2xx or 4xx.

        Errors are raised `from None` and have no words of aiohttp, which has the tokens of a query in some.
        """
        try:
            answer = await self._answer(request)
        except _NEVER_CONNECTED as error:
            raise NotSent(f"{self._network} could not be reached ({_reason(error)})") from None
        except TimeoutError:
            raise request.lost(f"{self._network} did not answer within {self._timeout.total:g} s") from None
        except (aiohttp.ClientError, OSError):
            raise request.lost(f"{self._network} broke off the connection before it had answered") from None
        if len(answer.body) > MAX_ANSWER_BYTES:
            raise request.lost(f"{self._network} answered with more than {MAX_ANSWER_BYTES // 1024} KB")
        if answer.status in _REDIRECTS:
            raise NotSent(f"{self._network} answered with a redirect ({answer.status}): check the address of its API")
        if not answer.is_conclusive:
            failed = f"{self._network} answered {answer.status}"
            raise NotSent(failed) if request.fails_safely else request.lost(failed)
        return answer

    async def _answer(self, request: Request) -> Answer:
        async with (
            self._open_session() as session,
            session.request(
                request.method,
                request.url,
                params=request.query,
                headers=request.headers,
                data=request.form,
                json=request.json,
                allow_redirects=False,
                timeout=self._timeout,
            ) as response,
        ):
            body = bytearray()
            with suppress(aiohttp.ClientError, TimeoutError, OSError):  # the status says what matters, if the body breaks off
                while len(body) <= MAX_ANSWER_BYTES and (chunk := await response.content.read(MAX_ANSWER_BYTES)):
                    body += chunk
            return Answer(response.status, {name.lower(): value for name, value in response.headers.items()}, bytes(body))


def _reason(error: Exception) -> str:
    if isinstance(error, AddressRefused):
        return str(error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or type(error.os_error).__name__
    return "the connection timed out" if isinstance(error, aiohttp.ConnectionTimeoutError) else "its address is invalid"
