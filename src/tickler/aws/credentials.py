"""Whose requests these are: credentials, region and endpoint, found by botocore where all of AWS's tools find them."""

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

# Of botocore, and of what it runs for us: a credential process that is not there, or does not answer in JSON.
_LOOKUP_FAILURES = (
    botocore.exceptions.BotoCoreError,
    botocore.exceptions.ClientError,
    OSError,
    RuntimeError,
    ValueError,
)


class Signer:
    """Signs requests to one service in one region. Looking for credentials may read files and ask a metadata service."""

    def __init__(self, address: Address, service: str = "dynamodb") -> None:
        self._session: Any = botocore.session.get_session()  # botocore has no types
        self._service = service
        self._credentials: Any = None
        self._clock = SystemClock()
        try:
            self.region = address.region or self._find_region()
            self.endpoint = (address.endpoint or self._find_endpoint()).rstrip("/")
        except botocore.exceptions.BotoCoreError as error:
            raise InvalidInput(f"AWS's configuration cannot be used: {error}: check AWS_PROFILE and the config file") from error
        if not self.endpoint.startswith(("http://", "https://")):
            raise InvalidInput(f"endpoint: {self.endpoint!r} does not begin with https:// or http://")
        parts = urlsplit(self.endpoint)
        self._scope = Scope(self.region, service, parts.netloc)
        self._base = parts.path
        self._root = canonical_path(f"{parts.path}/")

    async def open(self) -> None:
        """Find credentials; `StoreUnavailable` says where they were looked for."""
        await self._find_credentials()

    async def headers(self, headers: Mapping[str, str], body: bytes, path: str = "/") -> dict[str, str]:
        """The headers, with the signature among them. `path` is what follows the endpoint, as it is sent."""
        credentials = await self._current_credentials()
        canonical = self._root if path == "/" else canonical_path(self._base + path)
        return signed(headers, body, credentials, self._scope, to_datetime(self._clock.now_ms()), canonical)

    async def renew(self) -> None:
        """Look for credentials anew, after those in hand have expired."""
        self._session = botocore.session.get_session()
        await self._find_credentials()

    async def _current_credentials(self) -> Credentials:
        """Those that were found, renewed if their time has come; that may ask a metadata service, and waits for it."""
        found = self._credentials
        try:
            if getattr(found, "refresh_needed", None) is not None and found.refresh_needed():
                frozen = await _on_a_thread(found.get_frozen_credentials)
            else:
                frozen = found.get_frozen_credentials()
            return Credentials(frozen.access_key, frozen.secret_key, frozen.token)
        except _LOOKUP_FAILURES as error:
            why = str(error).strip()
            raise StoreUnavailable(f"the AWS credentials could not be renewed: {why}; they came from {found.method}") from error

    async def _find_credentials(self) -> None:
        try:
            found = await _on_a_thread(self._session.get_credentials)
        except _LOOKUP_FAILURES as error:
            raise StoreUnavailable(f"no AWS credentials: {str(error).strip()}; tried {CHAIN}") from error
        if found is None:
            local = " (for DynamoDB Local any AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY will do)"
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
            raise InvalidInput(f"region {self.region!r} has no {self._service} that botocore knows of: check its name")
        return f"{'https' if 'https' in resolved['protocols'] else 'http'}://{resolved['hostname']}"


async def _on_a_thread(work: Callable[[], Any]) -> Any:
    """Run what waits on a thread that ends with it. Whoever is cancelled does not wait for that."""
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tickler-credentials")
    running = thread.submit(work)
    try:
        return await asyncio.wrap_future(running)
    finally:
        thread.shutdown(wait=running.done())
