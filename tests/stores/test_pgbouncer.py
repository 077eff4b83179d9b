"""Behind a real PgBouncer that shares its sessions between transactions."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from postgres_server import PostgresServer
from tickler import Cron, IndexRow, ManualClock, Schedule, StoreUnavailable, connect

NOW_MS = 1_921_406_400_000
HOURLY = Cron("0 * * * *")
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="NOT TESTED behind PgBouncer: there is none here: apt-get install pgbouncer"
)


@pytest.fixture(scope="module")
def bouncer(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PgBouncer with three server sessions for everyone."""
    folder = tmp_path_factory.mktemp("pgbouncer")
    port = _free_port()
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"""
        [databases]
        postgres = host={postgres_server.socket_folder} dbname=postgres user=postgres
        [pgbouncer]
        listen_addr = 127.0.0.1
        listen_port = {port}
        auth_type = any
        pool_mode = transaction
        default_pool_size = 3
        logfile = {folder / "log"}
        unix_socket_dir =
        """.replace("\n        ", "\n")
    )
    user = []
    if os.geteuid() == 0:  # it refuses to run as root
        owner = postgres_server.socket_folder.stat().st_uid
        for path in (folder, config):
            os.chown(path, owner, -1)
        for parent in folder.parents[:2]:
            parent.chmod(0o755)
        user = ["-u", pwd.getpwuid(owner).pw_name]
    assert PROGRAM is not None
    process = subprocess.Popen([PROGRAM, *user, str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait_for(port, process, folder / "log")
    yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    process.terminate()
    process.wait(10)


async def test_schedules_and_claims_work_while_many_clients_share_few_sessions(bouncer: str, postgres_url: str) -> None:
    url = f"{bouncer}?schema={postgres_url.partition('&schema=')[2]}"
    async with connect(url, clock=ManualClock(NOW_MS)) as first, connect(url, clock=ManualClock(NOW_MS)) as second:
        await first.schedules.put_many([Schedule(owner="u1", key=f"k{n:04}", when=HOURLY) for n in range(1200)])
        await asyncio.gather(
            *(t.schedules.put(Schedule(owner="u2", key=f"k{n}", when=HOURLY)) for n in range(20) for t in (first, second))
        )

        async def claim_all(number: int) -> list[IndexRow]:
            t = (first, second)[number % 2]
            mine: list[IndexRow] = []
            while claimed := await t.index.claim_due(NOW_MS + 3_600_000, 50):
                mine += claimed
            return mine

        shares = await asyncio.gather(*(claim_all(number) for number in range(8)))
        claimed = Counter((row.owner, row.key) for share in shares for row in share)
        assert len(claimed) == claimed.total() == 1220


async def test_sessions_are_really_shared(bouncer: str) -> None:
    """What makes the test above worth something: this is not one session a client."""
    connections = [await asyncpg.connect(bouncer, statement_cache_size=0) for _ in range(6)]
    pids = {await connection.fetchval("SELECT pg_backend_pid()") for connection in connections for _ in range(3)}
    for connection in connections:
        await connection.close()
    assert len(pids) <= 3


async def test_a_callers_pool_that_keeps_statements_is_told_what_to_change(bouncer: str, postgres_url: str) -> None:
    schema = postgres_url.partition("&schema=")[2]
    async with connect(postgres_url):
        pass  # makes the tables
    async with asyncpg.create_pool(bouncer, min_size=4, max_size=4) as pool, connect(pool=pool, schema=schema, create=False) as t:
        calls = [call for _ in range(20) for call in (t.index.next_due(), t.index.count(), t.index.set_aside())]
        answers = await asyncio.gather(*calls, return_exceptions=True)
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    assert errors, "no two clients met on one session, so nothing was shown"
    assert {type(error) for error in errors} == {StoreUnavailable}
    assert "statement_cache_size=0" in str(errors[0])


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
