"""One DynamoDB, asked over HTTP: signed, retried with full jitter, and counted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

import aiohttp
import msgspec

from tickler.aws.address import Address
from tickler.aws.credentials import CHAIN, Signer
from tickler.dynamo.failures import (
    EXPIRED_CREDENTIALS,
    REFUSED_CREDENTIALS,
    THROTTLED,
    RequestRefused,
    read_failure,
    worth_another_try,
)
from tickler.dynamo.usage import READS, WRITES, Usage
from tickler.errors import StoreUnavailable

FIRST_PAUSE_S = 0.05
MAX_PAUSE_S = 5.0
CONNECT_TIMEOUT_S = 3.0

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Client:
    """`call` an operation with what its API reference says, and get what it answers.

    Throttling, errors of the service and lost connections are repeated, so a write may have been done although its answer
    was lost: writers make their writes conditional and recognise their own.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.usage = Usage()
        self._session: aiohttp.ClientSession | None = None
        self._date: str | None = None

    @cached_property
    def _signer(self) -> Signer:
        """Made when it is needed: to look at a store's definition takes no region."""
        return Signer(self.address)

    @property
    def region(self) -> str:
        return self._signer.region

    @property
    def endpoint(self) -> str:
        return self._signer.endpoint

    async def open(self) -> None:
        if self._session is None:
            await self._signer.open()
            # Not `connect`, which counts the waiting for one of our own connections too.
            timeout = aiohttp.ClientTimeout(total=self.address.timeout_s, sock_connect=CONNECT_TIMEOUT_S)
            connector = aiohttp.TCPConnector(limit=self.address.connections)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @property
    def server_now_ms(self) -> int | None:
        """The time at DynamoDB when it last answered, to the second; None before that."""
        return None if self._date is None else int(parsedate_to_datetime(self._date).timestamp() * 1000) + 500

    async def call(self, operation: str, request: Mapping[str, object]) -> dict[str, Any]:
        """The answer. `RequestRefused` when repeating would not help, `StoreUnavailable` when repeating did not."""
        if operation in READS or operation in WRITES:
            request = {**request, "ReturnConsumedCapacity": "TOTAL"}
        body = _encode(request)
        failure: Exception | None = None
        for attempt in range(self.address.attempts):
            if failure is not None:
                self.usage.retries[failure.code if isinstance(failure, RequestRefused) else type(failure).__name__] += 1
                await pause(attempt)
            try:
                answer = await self._send(operation, body)
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                failure = error
            except RequestRefused as error:
                if error.code in EXPIRED_CREDENTIALS:
                    await self._signer.renew()
                elif not worth_another_try(error.code):
                    raise self._meaning(error) from error
                failure = error
            else:
                if "ConsumedCapacity" in answer:
                    self.usage.count(operation, answer["ConsumedCapacity"])
                return answer
        raise self._gave_up(operation, failure) from failure

    async def _send(self, operation: str, body: bytes) -> dict[str, Any]:
        self._opened()
        self.usage.requests[operation] += 1
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"DynamoDB_20120810.{operation}",
            "accept-encoding": "identity",
        }
        signed = await self._signer.headers(headers, body)
        async with self._opened().post(f"{self.endpoint}/", data=body, headers=signed, allow_redirects=False) as response:
            answer = await response.read()
            self._date = response.headers.get("Date", self._date)
            if response.status != 200:
                raise read_failure(response.status, answer)
            try:
                return _decode(answer)
            except msgspec.MsgspecError as error:
                raise RequestRefused("InternalServer", f"answered {answer[:200]!r}, which is not what it answers") from error

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise StoreUnavailable(f"{self.endpoint}: this client is closed: use it inside `async with`")
        return self._session

    def _meaning(self, error: RequestRefused) -> Exception:
        if error.code not in REFUSED_CREDENTIALS:
            return error
        return StoreUnavailable(
            f"{self.endpoint} refused these credentials: {error.message} ({error.code}); they came from the first that had some "
            f"of {CHAIN}: check them, their policy, and this machine's clock"
        )

    def _gave_up(self, operation: str, failure: Exception | None) -> StoreUnavailable:
        if isinstance(failure, RequestRefused) and failure.code in THROTTLED:
            why = f"throttled it ({failure.code}): raise the table's capacity or its shards, or spread the load"
        elif isinstance(failure, RequestRefused) and failure.code in EXPIRED_CREDENTIALS:
            why = f"said that the credentials have expired ({failure}), and there are no newer ones: renew them in {CHAIN}"
        elif isinstance(failure, RequestRefused):
            why = f"failed ({failure}): try again, and look at the service's health if that goes on"
        elif isinstance(failure, TimeoutError) and not isinstance(failure, aiohttp.ClientError):
            why = f"did not answer within {self.address.timeout_s:g} s: check the endpoint and the network, or wait longer for it"
        else:
            why = f"did not answer ({type(failure).__name__}: {failure}): check the endpoint and the network"
        return StoreUnavailable(f"{self.endpoint}: {operation} was tried {self.address.attempts} times and DynamoDB {why}")


async def pause(attempt: int) -> None:
    """Wait before the attempt of that number, counted from 0: full jitter, so that many clients do not come back together."""
    ceiling = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (attempt - 1))
    await asyncio.sleep(random.uniform(0, ceiling))  # noqa: S311  # not a secret
