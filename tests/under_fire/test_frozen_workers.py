"""A worker that stands still for longer than its lease, and then goes on as if nothing had been."""

from __future__ import annotations

import os
import signal

import pytest

from tickler import connect
from under_fire.accounts import Accounts, RecordProperty, all_entries, tell
from under_fire.load import nothing_is_owed, put_one_shots
from under_fire.processes import TIMEOUT_S, until
from under_fire.sink import Sink
from under_fire.target_windows import Run, check_windows
from under_fire.worker import Options
from under_fire.workers import Workers

NUMBER = 20


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"] if os.environ.get("TICKLER_SOAK") == "1" else ["postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


async def test_a_worker_that_stood_still_too_long_changes_nothing_that_another_has_taken_over(
    url: str, record_property: RecordProperty
) -> None:
    """The first worker is frozen while it holds all fires; the answers come when another has taken them over."""
    async with connect(url) as tickler, Sink() as sink, Workers(url, Options()) as workers:
        await workers.start()
        (first,) = workers.living
        load = await put_one_shots(tickler, "frozen", NUMBER, sink.hook(held=1), timeout=60)
        await until("the first holds all", lambda: len(first.held) == NUMBER)

        first.process.send_signal(signal.SIGSTOP)
        await workers.start()
        second = workers.living[-1]
        await until("another has taken over all of it", lambda: len(second.held) == NUMBER)
        await sink.let_go()
        await until("the other has delivered all of it", lambda: nothing_is_owed(tickler))
        first.process.send_signal(signal.SIGCONT)
        await until("the first has found that it is too late", lambda: first.late >= NUMBER)  # extending, settling, or both

        await workers.stop()
        arrivals, entries = await sink.arrivals(), await all_entries(tickler, load.due)
        until_ms = tickler.now_ms()
    accounts = Accounts(load.due, arrivals, entries)
    accounts.check_all_delivered()
    accounts.check_arrivals_against_history()
    accounts.check_every_repetition_has_its_reason()
    check_windows(
        Run(declared=load.declared, arrivals=arrivals, entries=entries, until=until_ms, lateness_ms=round(TIMEOUT_S * 1000))
    )
    assert accounts.number("expired") == accounts.duplicates == NUMBER
    tell(
        record_property,
        {"fires": NUMBER, "duplicates": NUMBER, "losses": 0, "expired leases": NUMBER, "races lost": workers.late},
    )
