"""Shared by the AWS targets: the allowed ARNs, and a signed POST whose every failure becomes an outcome with a remedy."""

from __future__ import annotations

import asyncio
import io
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Generic, TypeVar

import aiohttp
import msgspec
from yarl import URL

from tickler.aws.address import CONNECT_TIMEOUT_S, Address
from tickler.aws.credentials import CHAIN, Signer
from tickler.aws.error_codes import EXPIRED_CREDENTIALS, REFUSED_CREDENTIALS, THROTTLED, plain_code
from tickler.deliver.dns_resolver import SystemResolver
from tickler.deliver.exhaustion import exhaustion
from tickler.deliver.handler_thread import on_own_thread
from tickler.deliver.retry_after import read_retry_after
from tickler.errors import InvalidInput, StoreUnavailable
from tickler.model.delivery import Delivery, Outcome
from tickler.model.fire import MAX_ANSWER_BYTES
from tickler.model.target import LambdaTarget, SqsTarget

VARIABLE = "TICKLER_ALLOW_ARNS"
MAX_READ_BYTES = 65_536  # more than is kept: errors with long traces must be read to their end
MAX_QUOTE_LENGTH = 500
MAX_REGIONS = 64  # cached: if all ARNs are allowed, schedules may name regions that do not exist

# Without namespace and suffix, from the error lists of both services and the errors common to all services.
_THROTTLED = THROTTLED | {"TooManyRequests", "RequestThrottled", "KmsThrottled"}
_REFUSED_CREDENTIALS = REFUSED_CREDENTIALS | {
    "InvalidClientTokenId",
    "InvalidSecurity",
    "InvalidToken",
    "NotAuthorized",
    "OptInRequired",
    "RequestExpired",
    "SignatureDoesNotMatch",
}
_MISSING = frozenset({"ResourceNotFound", "QueueDoesNotExist", "NoPublishedVersion"})
_UNFIT_STATUSES = frozenset({400, 413, 415})
_UNFIT_FOR_NOW = frozenset({"SnapStart"})  # the function's own code failed at its start: like a function error


class AllowedArns(msgspec.Struct, frozen=True):
    """The ARNs that a worker may deliver to: whole, or a prefix with a `*` at its end. By default, none.

    Without this list, anyone who may write schedules could reach everything that the worker's credentials reach.
    """

    patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            if pattern != "*" and (not pattern.startswith("arn:") or "*" in pattern[:-1]):
                raise InvalidInput(
                    f"{VARIABLE}: {pattern!r} is neither an ARN nor a prefix of one that ends in '*': "
                    "write 'arn:aws:sqs:eu-west-1:123456789012:*'"
                )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> AllowedArns:
        """Read TICKLER_ALLOW_ARNS, separated by commas."""
        patterns = (pattern.strip() for pattern in environ.get(VARIABLE, "").split(","))
        return cls(tuple(pattern for pattern in patterns if pattern))

    def allows(self, arn: str) -> bool:
        return any(arn.startswith(pattern[:-1]) if pattern.endswith("*") else arn == pattern for pattern in self.patterns)


class Request(msgspec.Struct, frozen=True):
    """A POST to a service. `path` is percent-encoded and is appended to the endpoint."""

    path: str
    headers: dict[str, str]  # with names in lower case
    body: bytes


class Answer(msgspec.Struct, frozen=True):
    """The beginning of a service's answer. `code` is the error code without namespace and suffix."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str | None:
        """The first 2 KB, as text that every store can keep."""
        text = self.body[:MAX_ANSWER_BYTES].decode(errors="replace").replace("\0", "")
        return text.encode()[:MAX_ANSWER_BYTES].decode(errors="ignore") or None

    @property
    def code(self) -> str | None:
        for named in (self.headers.get("x-amzn-ErrorType"), self.field("__type"), self.field("code")):
            if named:
                return plain_code(named.partition(":")[0])
        return None

    def field(self, name: str) -> str | None:
        """Return a text field of a JSON answer, short enough to be quoted; None if there is no such text."""
        try:
            value = msgspec.json.decode(self.body, type=dict[str, object]).get(name)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return value[:MAX_QUOTE_LENGTH].replace("\0", "") if isinstance(value, str) else None


T = TypeVar("T", SqsTarget, LambdaTarget)


class AwsDeliverer(ABC, Generic[T]):
    """Delivers to an AWS service in the region of the target's ARN, if the ARN is allowed.

    Endpoint and credentials are found where AWS's own tools find them (AWS_ENDPOINT_URL_SQS and the like), once for each region,
    when a delivery first needs them. `endpoint` overrides that for all regions. The number of connections is not limited here:
    callers limit how many deliveries run at once.
    """

    service: ClassVar[str]
    action: ClassVar[str]  # the IAM action that the credentials must allow
    when_late: ClassVar[str]  # the remedy after a timeout

    def __init__(self, allowed_arns: AllowedArns, endpoint: str | None = None) -> None:
        self._allowed = allowed_arns
        self._endpoint = endpoint
        self._signers: dict[str, Signer] = {}
        self._making_signer = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    @abstractmethod
    def _request(self, delivery: Delivery, arn: str, endpoint: str) -> Request | Outcome:
        """Return the request, or the outcome if sending it is useless."""

    @abstractmethod
    def _read(self, answer: Answer) -> Outcome:
        """Return the outcome of an answer with status 200."""

    async def open(self) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, resolver=SystemResolver()),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )

    async def close(self) -> None:
        session, self._session = self._session, None
        self._signers.clear()
        if session is not None:
            await session.close()

    async def deliver(self, delivery: Delivery, target: T) -> Outcome:
        """Send the fire within the delivery's timeout."""
        if self._session is None:
            raise RuntimeError("this deliverer is not open: await open() first")
        if not self._allowed.allows(target.arn):
            return Outcome(
                verdict="give_up",
                detail=f"{target.arn} is not allowed: add it, or a prefix of it with a '*', to {VARIABLE} of the workers",
            )
        out_of: str | None = None
        try:
            async with asyncio.timeout(delivery.timeout_s):
                return await self._send(self._session, delivery, target.arn)
        except (StoreUnavailable, InvalidInput) as error:
            why, out_of = str(error), exhaustion(error)
        except (aiohttp.ClientError, ConnectionError) as error:
            out_of = exhaustion(error) if isinstance(error, aiohttp.ClientConnectorError) else None  # nothing was sent
            failed = f"{type(error).__name__}: {error}"[:MAX_QUOTE_LENGTH]
            why = f"{self.service} could not be reached ({failed}): check the endpoint and the network"
        except TimeoutError:
            why = f"{self.service} did not answer within {delivery.timeout_s:g} s: {self.when_late}"
        except OSError as error:  # from files and threads: nothing was sent
            why, out_of = f"{type(error).__name__}: {error}"[:MAX_QUOTE_LENGTH], exhaustion(error)
        if out_of is not None:
            return Outcome(verdict="release", detail=f"the worker could not reach {self.service}: {out_of}", obstacle="exhausted")
        return Outcome(verdict="retry", detail=why)

    async def _send(self, session: aiohttp.ClientSession, delivery: Delivery, arn: str) -> Outcome:
        signer = await self._signer(arn.split(":")[3])
        request = self._request(delivery, arn, signer.endpoint)
        if isinstance(request, Outcome):
            return request
        answer = await _post(session, signer, request)
        if answer.status != 200 and answer.code in EXPIRED_CREDENTIALS:
            await signer.renew()
            answer = await _post(session, signer, request)
        return self._read(answer) if answer.status == 200 else self._refused(answer, delivery.started_at)

    async def _signer(self, region: str) -> Signer:
        if signer := self._signers.pop(region, None):
            self._signers[region] = signer  # now the newest
            return signer
        async with self._making_signer:
            if signer := self._signers.get(region):
                return signer
            # On a thread, because botocore reads its list of all endpoints first.
            address = Address(region=region, endpoint=self._endpoint)
            signer = await on_own_thread(partial(Signer, address, self.service), f"tickler-{self.service}-{region}")
            await signer.open()
            if len(self._signers) >= MAX_REGIONS:
                del self._signers[next(iter(self._signers))]  # the least recently used
            self._signers[region] = signer
            return signer

    def _refused(self, answer: Answer, now_ms: int) -> Outcome:
        code = answer.code
        message = answer.field("message") or answer.field("Message") or (answer.text or "an empty answer")[:MAX_QUOTE_LENGTH]
        remedy = self._remedy(answer.status, code)
        return Outcome(
            verdict="retry" if remedy else "give_up",
            status=answer.status,
            detail=f"{self.service} answered {answer.status}: {message} ({code or 'not an AWS error'}): "
            f"{remedy or 'a retry cannot succeed: change the schedule'}",
            answer=answer.text,
            retry_after_ms=read_retry_after(answer.headers.get("Retry-After"), now_ms),
        )

    def _remedy(self, status: int, code: str | None) -> str | None:
        """Return the remedy if a retry may succeed; None if it cannot."""
        if code in _THROTTLED or status == 429:
            return "raise the limits of the service, or spread the schedules"
        if code in EXPIRED_CREDENTIALS:
            return f"the credentials have expired and no newer ones were found: renew them in {CHAIN}"
        if code in _REFUSED_CREDENTIALS or (code is None and status in (401, 403)):
            return f"check that the credentials are valid and allow {self.action}, and that this machine's clock is right"
        if code in _MISSING or status == 404:
            return "create it, or correct the ARN"
        if code is not None and status in _UNFIT_STATUSES and code not in _UNFIT_FOR_NOW and not code.startswith("Kms"):
            return None
        return "if it keeps failing, check the resource and the health of the service"


async def _post(session: aiohttp.ClientSession, signer: Signer, request: Request) -> Answer:
    headers = await signer.headers({**request.headers, "accept-encoding": "identity"}, request.body, request.path)
    url = URL(f"{signer.endpoint}{request.path}", encoded=True)  # sent as signed
    data = io.BytesIO(request.body)  # aiohttp warns about bytes longer than 1 MB
    async with session.post(url, data=data, headers=headers, allow_redirects=False) as response:
        return Answer(response.status, response.headers, await _beginning(response.content))


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    """Read only as much as is used. aiohttp then closes a connection that has more to come."""
    read = b""
    while chunk := await content.read(MAX_READ_BYTES - len(read)):
        read += chunk
    return read
