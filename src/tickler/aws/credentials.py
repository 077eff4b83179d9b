"""Credentials, region and endpoint, which botocore finds where all of AWS's tools find them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import botocore.exceptions
import botocore.session
from botocore.regions import EndpointResolver

from tickler.aws.address import Address
from tickler.aws.signature import Credentials, Scope, canonical_path, signed
from tickler.clock import SystemClock, to_datetime
from tickler.errors import InvalidInput, StoreUnavailable

CHAIN = (
    "the environment (AWS_ACCESS_KEY_ID), the profile (AWS_PROFILE, the shared credentials and config files, SSO), "
    "a web identity, the container's role, the instance's role"
)

# Raised by botocore, and by a credential process that is missing or does not print JSON.
_LOOKUP_FAILURES = (
    botocore.exceptions.BotoCoreError,
    botocore.exceptions.ClientError,
    OSError,
    RuntimeError,
    ValueError,
)


class Signer:
    """Signs requests to one service in one region. Finding credentials may read files and call a metadata service."""

    def __init__(self, address: Address, service: str) -> None:
        self._session: Any = botocore.session.get_session()  # botocore has no types
        self._service = service
        self._credentials: Any = None
        self._clock = SystemClock()
        try:
            self.region = address.region or self._find_region()
            self.endpoint = (address.endpoint or self._find_endpoint()).rstrip("/")
        except botocore.exceptions.BotoCoreError as error:
            raise InvalidInput(f"invalid AWS configuration: {error}: check AWS_PROFILE and the config file") from error
        if not self.endpoint.startswith(("http://", "https://")):
            raise InvalidInput(f"endpoint: {self.endpoint!r} must start with https:// or http://")
        parts = urlsplit(self.endpoint)
        self._scope = Scope(self.region, service, parts.netloc)
        self._base = parts.path
        self._root = canonical_path(f"{parts.path}/")

    async def open(self) -> None:
        """Find credentials. Raises `StoreUnavailable`, which lists the places that were tried."""
        await self._find_credentials()

    async def headers(self, headers: Mapping[str, str], body: bytes, path: str = "/") -> dict[str, str]:
        """Return `headers` with the signature added. `path` follows the endpoint, percent-encoded as it is sent."""
        credentials = await self._current_credentials()
        canonical = self._root if path == "/" else canonical_path(self._base + path)
        return signed(headers, body, credentials, self._scope, to_datetime(self._clock.now_ms()), canonical)

    async def renew(self) -> None:
        """Find credentials again, after the current ones have expired."""
        self._session = botocore.session.get_session()
        await self._find_credentials()

    async def _current_credentials(self) -> Credentials:
        """Return the credentials, refreshed if they are about to expire, which may wait for a metadata service."""
        found = self._credentials
        try:
            if getattr(found, "refresh_needed", None) is not None and found.refresh_needed():
                frozen = await _run_on_thread(found.get_frozen_credentials)
            else:
                frozen = found.get_frozen_credentials()
            return Credentials(frozen.access_key, frozen.secret_key, frozen.token)
        except _LOOKUP_FAILURES as error:
            why = str(error).strip()
            raise StoreUnavailable(f"cannot refresh the AWS credentials: {why}; check their source, {found.method}") from error

    async def _find_credentials(self) -> None:
        try:
            found = await _run_on_thread(self._session.get_credentials)
        except _LOOKUP_FAILURES as error:
            raise StoreUnavailable(f"no AWS credentials: {str(error).strip()}; tried {CHAIN}") from error
        if found is None:
            local = " (DynamoDB Local accepts any AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
            raise StoreUnavailable(
                f"no AWS credentials for {self.endpoint}: tried {CHAIN}; set one of them up"
                f"{local if self._service == 'dynamodb' else ''}"
            )
        self._credentials = found

    def _find_region(self) -> str:
        region = os.environ.get("AWS_REGION") or self._session.get_config_variable("region")
        if not region:
            raise InvalidInput("no AWS region: add ?region=eu-west-1 to the URL, or set AWS_REGION")
        return str(region)

    def _find_endpoint(self) -> str:
        configured = os.environ.get(f"AWS_ENDPOINT_URL_{self._service.upper()}") or os.environ.get("AWS_ENDPOINT_URL")
        if configured:
            return configured
        resolved = EndpointResolver(self._session.get_data("endpoints")).construct_endpoint(self._service, self.region)
        if resolved is None:
            raise InvalidInput(f"botocore knows no {self._service} endpoint in region {self.region!r}: check the region's name")
        return f"{'https' if 'https' in resolved['protocols'] else 'http'}://{resolved['hostname']}"


async def _run_on_thread(work: Callable[[], Any]) -> Any:
    """Run blocking work on a thread of its own. A cancelled caller does not wait for the thread to end."""
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tickler-credentials")
    running = thread.submit(work)
    try:
        return await asyncio.wrap_future(running)
    finally:
        thread.shutdown(wait=running.done())
