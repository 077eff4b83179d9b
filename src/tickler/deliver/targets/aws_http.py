"""What deliveries to AWS have in common: which ARNs are allowed, and one signed POST that ends in time and in a sentence."""

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
MAX_READ_BYTES = 65_536  # more than is kept, so that errors with long traces are read to their end
MAX_QUOTE_LENGTH = 500
MAX_REGIONS = 64  # at a time: schedules may name what is none, if all ARNs are allowed

# Without namespace and suffix, from the lists of errors of both services and of those that all services share.
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
_UNFIT_FOR_NOW = frozenset({"SnapStart"})  # the function's own code failed while it was started: as good as a function error


class AllowedArns(msgspec.Struct, frozen=True):
    """What a worker may deliver to with its credentials: ARNs, or how they begin, with a `*` at the end. At first, nothing.

    Whoever may write schedules names ARNs in them, and would otherwise reach all that the worker's credentials reach.
    """

    patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            if pattern != "*" and (not pattern.startswith("arn:") or "*" in pattern[:-1]):
                raise InvalidInput(
                    f"{VARIABLE}: {pattern!r} is neither an ARN nor the beginning of one with a '*' at its end: "
                    "write 'arn:aws:sqs:eu-west-1:123456789012:*'"
                )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> AllowedArns:
        """Those of TICKLER_ALLOW_ARNS, separated by commas."""
        patterns = (pattern.strip() for pattern in environ.get(VARIABLE, "").split(","))
        return cls(tuple(pattern for pattern in patterns if pattern))

    def allows(self, arn: str) -> bool:
        return any(arn.startswith(pattern[:-1]) if pattern.endswith("*") else arn == pattern for pattern in self.patterns)


class Request(msgspec.Struct, frozen=True):
    """A POST to a service. `path` is percent-encoded, and follows the endpoint."""

    path: str
    headers: dict[str, str]  # with names in lower case
    body: bytes


class Answer(msgspec.Struct, frozen=True):
    """What a service said, as far as it is read. `code` is the error's, without namespace and suffix."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str | None:
        """Its first 2 KB, as text that every store can keep."""
        text = self.body[:MAX_ANSWER_BYTES].decode(errors="replace").replace("\0", "")
        return text.encode()[:MAX_ANSWER_BYTES].decode(errors="ignore") or None

    @property
    def code(self) -> str | None:
        for named in (self.headers.get("x-amzn-ErrorType"), self.field("__type"), self.field("code")):
            if named:
                return plain_code(named.partition(":")[0])
        return None

    def field(self, name: str) -> str | None:
        """A text in the JSON that it is, short enough to be quoted; None if it is no JSON, or that is no text."""
        try:
            value = msgspec.json.decode(self.body, type=dict[str, object]).get(name)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return value[:MAX_QUOTE_LENGTH].replace("\0", "") if isinstance(value, str) else None


T = TypeVar("T", SqsTarget, LambdaTarget)


class AwsDeliverer(ABC, Generic[T]):
    """Delivers to a service of AWS, in the region that the target's ARN names, if the ARN is allowed.

    Endpoint and credentials are found where AWS's own tools find them (AWS_ENDPOINT_URL_SQS and the like), once a region and
    not before a delivery needs them. `endpoint` comes before that, and is for all regions. A connection is never waited for:
    whoever calls `deliver` says how many there are.
    """

    service: ClassVar[str]
    action: ClassVar[str]  # what its credentials must be allowed to do
    when_late: ClassVar[str]  # what to do about an answer that does not come in time

    def __init__(self, allowed_arns: AllowedArns, endpoint: str | None = None) -> None:
        self._allowed = allowed_arns
        self._endpoint = endpoint
        self._signers: dict[str, Signer] = {}
        self._making_signer = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    @abstractmethod
    def _request(self, delivery: Delivery, arn: str, endpoint: str) -> Request | Outcome:
        """What to send, or why it would be in vain."""

    @abstractmethod
    def _read(self, answer: Answer) -> Outcome:
        """What an answer with status 200 stands for."""

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
        """Takes the delivery's timeout at most."""
        if self._session is None:
            raise RuntimeError("this deliverer is not open: await open() first")
        if not self._allowed.allows(target.arn):
            return Outcome(
                verdict="give_up",
                detail=f"{target.arn} is not allowed here: add it, or how it begins with a '*', to {VARIABLE} of the workers",
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
            why = f"{self.service} could not be asked ({failed}): check the endpoint and the network"
        except TimeoutError:
            why = f"no answer from {self.service} within {delivery.timeout_s:g} s: {self.when_late}"
        except OSError as error:  # of files and threads: nothing was sent
            why, out_of = f"{type(error).__name__}: {error}"[:MAX_QUOTE_LENGTH], exhaustion(error)
        if out_of is not None:
            return Outcome(verdict="release", detail=f"the worker could not ask {self.service}: {out_of}", obstacle="exhausted")
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
            self._signers[region] = signer  # the last to go
            return signer
        async with self._making_signer:
            if signer := self._signers.get(region):
                return signer
            # On a thread, since botocore reads its list of all endpoints first.
            address = Address(region=region, endpoint=self._endpoint)
            signer = await on_own_thread(partial(Signer, address, self.service), f"tickler-{self.service}-{region}")
            await signer.open()
            if len(self._signers) >= MAX_REGIONS:
                del self._signers[next(iter(self._signers))]  # the one that was not used for longest
            self._signers[region] = signer
            return signer

    def _refused(self, answer: Answer, now_ms: int) -> Outcome:
        code = answer.code
        message = answer.field("message") or answer.field("Message") or (answer.text or "nothing")[:MAX_QUOTE_LENGTH]
        remedy = self._remedy(answer.status, code)
        return Outcome(
            verdict="retry" if remedy else "give_up",
            status=answer.status,
            detail=f"{self.service} answered {answer.status}: {message} ({code or 'no error of AWS'}): "
            f"{remedy or 'no repetition would mend that: change the schedule'}",
            answer=answer.text,
            retry_after_ms=read_retry_after(answer.headers.get("Retry-After"), now_ms),
        )

    def _remedy(self, status: int, code: str | None) -> str | None:
        """What may make it work later, though nothing is changed here; None if nothing will."""
        if code in _THROTTLED or status == 429:
            return "raise its limits, or spread the schedules"
        if code in EXPIRED_CREDENTIALS:
            return f"the credentials have expired and there are no newer ones: renew them in {CHAIN}"
        if code in _REFUSED_CREDENTIALS or (code is None and status in (401, 403)):
            return f"check the credentials, that they are allowed to {self.action}, and this machine's clock"
        if code in _MISSING or status == 404:
            return "make it, or correct the ARN"
        if code is not None and status in _UNFIT_STATUSES and code not in _UNFIT_FOR_NOW and not code.startswith("Kms"):
            return None
        return "look at it, and at the service's health, if that goes on"


async def _post(session: aiohttp.ClientSession, signer: Signer, request: Request) -> Answer:
    headers = await signer.headers({**request.headers, "accept-encoding": "identity"}, request.body, request.path)
    url = URL(f"{signer.endpoint}{request.path}", encoded=True)  # sent as it is signed
    data = io.BytesIO(request.body)  # aiohttp warns of bytes that are longer than 1 MB
    async with session.post(url, data=data, headers=headers, allow_redirects=False) as response:
        return Answer(response.status, response.headers, await _beginning(response.content))


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    """No more than is of use. A connection with more to come is closed by aiohttp, not used again."""
    read = b""
    while chunk := await content.read(MAX_READ_BYTES - len(read)):
        read += chunk
    return read
