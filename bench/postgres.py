"""A PostgreSQL for the benchmarks, with its default durability."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from postgres_server import PostgresServer as PostgresServer


@contextmanager
def bench_server() -> Iterator[PostgresServer]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with PostgresServer(Path(folder, "data")) as server:
            yield server
