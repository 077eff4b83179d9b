"""HTTP client of DynamoDB and its streams. Signs requests, retries with full jitter, and counts usage."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from functools import cached_property
from io import BytesIO
from typing import Any, TypeVar

import aiohttp
import msgspec

from tickler.aws.address import CONNECT_TIMEOUT_S, Address
from tickler.aws.credentials import CHAIN, Signer
from tickler.aws.endpoints import endpoint_of_related
from tickler.aws.error_codes import EXPIRED_CREDENTIALS, REFUSED_CREDENTIALS
from tickler.dynamo.failures import THROTTLED, RequestRefused, is_retryable, read_failure
from tickler.dynamo.usage import READS, WRITES, Usage
from tickler.errors import StoreUnavailable

FIRST_PAUSE_S = 0.05
MAX_PAUSE_S = 5.0
LARGE_BODY_BYTES = 1024 * 1024
STREAM_OPERATIONS = frozenset({"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"})
_REMEDY = "raise the table's capacity or its shards, or spread the load"
_STREAMS_REMEDY = "let at most two consumers read a stream, Lambda functions included"

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Client:
    """Calls operations by name, with requests and responses as in the API references of DynamoDB and DynamoDB Streams.

    Retries after throttling, service errors and lost connections. A write may therefore have happened although its
    response was lost: callers make their writes conditional, and recognise their own.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.usage = Usage()
        self._session: aiohttp.ClientSession | None = None
        self._streams_signer: Signer | None = None
        self._finding_streams = asyncio.Lock()
        self._date: str | None = None

    @cached_property
    def _signer(self) -> Signer:
        """Created on first use, because printing a store's definition needs no region."""
        return Signer(self.address, "dynamodb")

    @cached_property
    def streams_endpoint(self) -> str:
        """The endpoint of DynamoDB Streams: another host on AWS, and the same one elsewhere."""
        configured = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB_STREAMS")
        if configured and self.address.endpoint is None:
            return configured.rstrip("/")
        return endpoint_of_related(self.endpoint, self.region, "dynamodb", "dynamodbstreams")

    @property
    def region(self) -> str:
        return self._signer.region

    @property
    def endpoint(self) -> str:
        return self._signer.endpoint

    async def open(self) -> None:
        if self._session is None:
            await self._signer.open()
            # Not `connect`, which includes the wait for a free connection of our own pool.
            timeout = aiohttp.ClientTimeout(total=self.address.timeout_s, sock_connect=CONNECT_TIMEOUT_S)
            connector = aiohttp.TCPConnector(limit=self.address.connections)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @property
    def server_now_ms(self) -> int | None:
        """DynamoDB's clock at its last response, to the second. None before the first."""
        return None if self._date is None else int(parsedate_to_datetime(self._date).timestamp() * 1000) + 500

    @property
    def name(self) -> str:
        return f"DynamoDB at {self.endpoint}"

    async def is_same(self, other: object) -> bool:
        """Tell whether one transaction can write to the tables of both. The account is DynamoDB's to check."""
        return other is self or (isinstance(other, Client) and (self.endpoint, self.region) == (other.endpoint, other.region))

    async def call(self, operation: str, request: Mapping[str, object]) -> dict[str, Any]:
        """Return the response. Raises `RequestRefused` if a retry cannot help, `StoreUnavailable` if the retries did not."""
        return await self.call_decoded(operation, request, _decode_object)

    async def call_decoded(
        self, operation: str, request: Mapping[str, object], decode: Callable[[bytes], T], *, once: bool = False
    ) -> T:
        """Return what `decode` makes of the response, whose `ConsumedCapacity`, if it has one, is counted.

        Raises as `call`, and `msgspec.ValidationError` if `decode` does, because the items are of another form. `once`: the
        request must not be done twice, so it is not repeated after a response was lost; `StoreUnavailable` says so.
        """
        if operation in READS or operation in WRITES:
            request = {"ReturnConsumedCapacity": "TOTAL", **request}
        body = _encode(request)
        failure: Exception | None = None
        for attempt in range(self.address.attempts):
            if failure is not None:
                self.usage.retries[failure.code if isinstance(failure, RequestRefused) else type(failure).__name__] += 1
                await pause(attempt)
            try:
                answer = await self._send(operation, body, decode)
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                if once and not isinstance(error, aiohttp.ClientConnectorError):
                    raise StoreUnavailable(
                        f"{self.endpoint}: the response to {operation} was lost, so it may have been done or not: read the item"
                    ) from error
                failure = error
            except RequestRefused as error:
                if error.code in EXPIRED_CREDENTIALS:
                    await (await self._signer_of(operation)).renew()
                elif not is_retryable(error.code):
                    raise self._translate(error) from error
                failure = error
            else:
                self.usage.count(operation, _consumed(answer))
                return answer
        raise self._retries_exhausted(operation, failure) from failure

    async def _send(self, operation: str, body: bytes, decode: Callable[[bytes], T]) -> T:
        self._opened()
        self.usage.requests[operation] += 1
        api = "DynamoDBStreams_20120810" if operation in STREAM_OPERATIONS else "DynamoDB_20120810"
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"{api}.{operation}",
            "accept-encoding": "identity",
        }
        signer = await self._signer_of(operation)
        signed = await signer.headers(headers, body)
        async with self._opened().post(
            f"{signer.endpoint}/", data=_payload(body), headers=signed, allow_redirects=False
        ) as response:
            answer = await response.read()
            self._date = response.headers.get("Date", self._date)
            if response.status != 200:
                raise read_failure(response.status, answer)
            try:
                return decode(answer)
            except msgspec.ValidationError:
                raise
            except msgspec.MsgspecError as error:
                raise RequestRefused("InternalServer", f"the response is not JSON: {answer[:200]!r}") from error

    async def _signer_of(self, operation: str) -> Signer:
        if operation not in STREAM_OPERATIONS:
            return self._signer
        async with self._finding_streams:
            if self._streams_signer is None:
                self._streams_signer = await self._opened_streams_signer()
        return self._streams_signer

    async def _opened_streams_signer(self) -> Signer:
        if self.streams_endpoint == self.endpoint:
            return self._signer
        address = msgspec.structs.replace(self.address, region=self.region, endpoint=self.streams_endpoint)
        signer = Signer(address, "dynamodb")
        await signer.open()
        return signer

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise StoreUnavailable(f"{self.endpoint}: this client is closed: use it inside `async with`")
        return self._session

    def _translate(self, error: RequestRefused) -> Exception:
        if error.code not in REFUSED_CREDENTIALS:
            return error
        return StoreUnavailable(
            f"{self.endpoint} refused the credentials: {error.message} ({error.code}): check them, their policy, and this "
            f"machine's clock; they came from the first of these that has any: {CHAIN}"
        )

    def _retries_exhausted(self, operation: str, failure: Exception | None) -> StoreUnavailable:
        if isinstance(failure, RequestRefused) and failure.code in THROTTLED:
            remedy = _STREAMS_REMEDY if operation in STREAM_OPERATIONS else _REMEDY
            why = f"throttled ({failure.code}): {remedy}"
        elif isinstance(failure, RequestRefused) and failure.code in EXPIRED_CREDENTIALS:
            why = f"the credentials have expired ({failure.code}), and there are no newer ones: renew them in {CHAIN}"
        elif isinstance(failure, RequestRefused):
            why = f"{failure.message} ({failure.code}): try again, and check the service's health if this persists"
        elif isinstance(failure, TimeoutError) and not isinstance(failure, aiohttp.ClientError):
            why = f"no response within {self.address.timeout_s:g} s: check the endpoint and the network, or raise the timeout"
        else:
            why = f"no response ({type(failure).__name__}: {failure}): check the endpoint and the network"
        endpoint = self.streams_endpoint if operation in STREAM_OPERATIONS else self.endpoint
        return StoreUnavailable(f"{endpoint}: {operation} failed after {self.address.attempts} attempts: {why}")


def _decode_object(body: bytes) -> dict[str, Any]:
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        raise msgspec.DecodeError(str(error)) from error


def _payload(body: bytes) -> bytes | BytesIO:
    """Return a body as aiohttp wants it: a large one as a file, which it sends in pieces."""
    return body if len(body) < LARGE_BODY_BYTES else BytesIO(body)


def _consumed(answer: object) -> Any:
    consumed = answer.get("ConsumedCapacity") if isinstance(answer, dict) else getattr(answer, "ConsumedCapacity", None)
    return consumed or []


async def pause(attempt: int) -> None:
    """Wait before attempt number `attempt`, counted from 0. Full jitter keeps many clients from retrying together."""
    ceiling = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (attempt - 1))
    await asyncio.sleep(random.uniform(0, ceiling))  # noqa: S311  # not a secret
