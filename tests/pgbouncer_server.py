"""A real PgBouncer that shares its sessions between transactions."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from postgres_server import PostgresServer

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

needs_pgbouncer = pytest.mark.skipif(
    PROGRAM is None, reason="NOT TESTED behind PgBouncer: there is none here: apt-get install pgbouncer"
)


class PgBouncer:
    """Started on entering, stopped on leaving. It has three server sessions for everyone."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._port = _free_port()

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        config = self._folder / "pgbouncer.ini"
        config.write_text(
            f"""
            [databases]
            postgres = host={self._server.socket_folder} dbname=postgres user=postgres
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {self._port}
            auth_type = any
            pool_mode = transaction
            default_pool_size = 3
            logfile = {self._folder / "log"}
            unix_socket_dir =
            """.replace("\n            ", "\n")
        )
        user = []
        if os.geteuid() == 0:  # it refuses to run as root
            owner = self._server.socket_folder.stat().st_uid
            for path in (self._folder, config):
                os.chown(path, owner, -1)
            for parent in self._folder.parents[:2]:
                parent.chmod(0o755)
            user = ["-u", pwd.getpwuid(owner).pw_name]
        assert PROGRAM is not None
        self._process = subprocess.Popen([PROGRAM, *user, str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _wait_for(self._port, self._process, self._folder / "log")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(10)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(200):
        assert process.poll() is None, log.read_text() if log.exists() else "pgbouncer did not start"
        with socket.socket() as probe:
            probe.settimeout(0.05)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    pytest.fail("pgbouncer does not answer")
