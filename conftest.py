"""Shared by all tests: a real PostgreSQL, a real DynamoDB engine, and how thorough to be."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from under_fire.summary import fire_lines

from dynamodb_server import DynamodbServer, engine_line
from postgres_server import PostgresServer
from shared_dynamodb_server import SharedDynamodbServer
from tickler.aws.address import Address
from tickler.dynamo.client import Client
from tickler.dynamo.failures import RequestRefused

_numbers = itertools.count()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what DynamoDB was judged by: it is not the same everywhere; and what happened to the fires under fire."""
    terminalreporter.write_line(engine_line())
    reports = [report for found in terminalreporter.stats.values() for report in found if isinstance(report, pytest.TestReport)]
    for line in fire_lines(reports, each=os.environ.get("TICKLER_SOAK") == "1"):
        terminalreporter.write_line(line)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that add an index to a table of DynamoDB Local in the soak only, one at a time.

    It loses such requests when they come together, and the index is never active.
    """
    for item in items:
        on_sql = any(f"[{engine}" in item.name for engine in ("memory", "sqlite", "postgres"))
        if on_sql or not item.get_closest_marker("adds_index"):
            continue
        item.add_marker(pytest.mark.xdist_group("indexes of DynamoDB Local"))
        if os.environ.get("TICKLER_SOAK") != "1":
            item.add_marker(pytest.mark.skip(reason="adds an index on DynamoDB Local, which may stand still: make soak"))


@pytest.fixture(scope="session")
def soak() -> bool:
    """Whether to be thorough rather than quick: `make soak`."""
    return os.environ.get("TICKLER_SOAK") == "1"


@pytest.fixture(scope="session")
def seed() -> int:
    """What sampled tests sample by."""
    return int(os.environ.get("TICKLER_SEED", "1"))


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL of this test run's own."""
    with PostgresServer(tmp_path_factory.mktemp("postgres") / "data") as server:
        yield server


@pytest.fixture
async def postgres_url(postgres_server: PostgresServer) -> AsyncIterator[str]:
    """A new, empty schema on it."""
    schema = f"test_{os.getpid()}_{next(_numbers)}"
    yield postgres_server.url(schema)
    connection = await asyncpg.connect(postgres_server.dsn)
    try:
        await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    finally:
        await connection.close()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A new, empty file."""
    return f"sqlite:///{tmp_path / 'tickler.db'}"


@pytest.fixture(scope="session")
def dynamodb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamodbServer]:
    """A DynamoDB engine of this test run's own, shared by its processes, and credentials that it takes."""
    is_one_of_several = "PYTEST_XDIST_WORKER" in os.environ
    shared = SharedDynamodbServer(tmp_path_factory.getbasetemp().parent) if is_one_of_several else DynamodbServer()
    with shared as server, pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        if os.environ.get("TICKLER_SOAK") != "1":
            patch.setattr(Client, "call", _refusing_to_add_indexes(Client.call))
        yield server


def _refusing_to_add_indexes(call: Callable[..., Any]) -> Callable[..., Any]:
    """Fail at once where DynamoDB Local might let the whole run stand still for ten minutes."""

    async def checked(client: Client, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if operation == "UpdateTable" and any("Create" in each for each in request.get("GlobalSecondaryIndexUpdates", [])):
            pytest.fail("this test adds an index to a table of DynamoDB Local: mark it with `adds_index`")
        answer: dict[str, Any] = await call(client, operation, request)
        return answer

    return checked


@pytest.fixture
def dynamodb_endpoint(dynamodb_server: DynamodbServer) -> str:
    return dynamodb_server.endpoint


@pytest.fixture
async def dynamodb_url(dynamodb_endpoint: str) -> AsyncIterator[str]:
    """A table of its own, made when it is opened and removed after the test: the engine gets slower with each it has."""
    table = f"test_{os.getpid()}_{next(_numbers)}"
    yield f"dynamodb://{table}?region=eu-west-1&endpoint={dynamodb_endpoint}&create=1&shards=4"
    client = Client(Address(region="eu-west-1", endpoint=dynamodb_endpoint))
    await client.open()
    with suppress(RequestRefused):
        await client.call("DeleteTable", {"TableName": table})
    await client.close()


@pytest.fixture(params=["memory", "sqlite", "postgres", "dynamodb"])
def any_url(request: pytest.FixtureRequest) -> str:
    """Each of the stores in turn."""
    urls: dict[str, Callable[[], str]] = {
        "memory": lambda: "memory://",
        "sqlite": lambda: str(request.getfixturevalue("sqlite_url")),
        "postgres": lambda: str(request.getfixturevalue("postgres_url")),
        "dynamodb": lambda: str(request.getfixturevalue("dynamodb_url")),
    }
    return urls[request.param]()


@pytest.fixture
def no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment in which AWS's tools find nothing: no keys, no files, no metadata service."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return monkeypatch


@pytest.fixture
def aws(no_aws: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing but a key."""
    no_aws.setenv("AWS_ACCESS_KEY_ID", "FIRSTKEY")
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "first secret")
    return no_aws
