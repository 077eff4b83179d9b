"""Shared by all tests: a real PostgreSQL, and how thorough to be."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from postgres_server import PostgresServer

_numbers = itertools.count()


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


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def any_url(request: pytest.FixtureRequest) -> str:
    """Each of the stores in turn."""
    urls: dict[str, Callable[[], str]] = {
        "memory": lambda: "memory://",
        "sqlite": lambda: str(request.getfixturevalue("sqlite_url")),
        "postgres": lambda: str(request.getfixturevalue("postgres_url")),
    }
    return urls[request.param]()
