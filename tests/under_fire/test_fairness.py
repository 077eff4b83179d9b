"""One owner's flood does not hold up the others, and limits are limits."""

from __future__ import annotations

import pytest

from tickler import At, Schedule, connect
from tickler.clock import to_datetime
from under_fire.accounts import RecordProperty, tell
from under_fire.load import SOON_MS, put_overdue
from under_fire.processes import until
from under_fire.sink import Sink
from under_fire.worker import Options
from under_fire.workers import Workers

QUEUED = 2_000
SOON_ENOUGH_MS = 5_000  # on a busy machine; it should be two seconds at most


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


def keys(number: int) -> list[str]:
    return [f"k{n:05}" for n in range(number)]


async def test_one_owners_flood_does_not_hold_up_another_owners_fire(
    url: str, soak: bool, record_property: RecordProperty
) -> None:
    async with connect(url) as tickler, Sink() as sink, Workers(url, Options(queued=QUEUED)) as workers:
        flood = 50_000 if soak else 5_000
        await put_overdue(url, "flood", keys(flood), sink.hook(takes_ms=200))
        await workers.start()
        (worker,) = workers.living
        await until("the flood fills the worker's queue", lambda: len(worker.claimed) >= QUEUED)

        due_at = tickler.now_ms() + SOON_MS
        await tickler.schedules.put(Schedule(owner="other", key="one", when=At(to_datetime(due_at)), target=sink.hook()))

        async def arrived() -> bool:
            return "other" in {arrival.owner for arrival in await sink.arrivals()}

        await until("the other owner's fire arrives", arrived)
        arrivals = await sink.arrivals()
        (other,) = [arrival for arrival in arrivals if arrival.owner == "other"]
        late_ms = other.at - due_at
        tell(record_property, {"held up by a flood, at most ms": late_ms})
        assert late_ms < SOON_ENOUGH_MS
        assert len(arrivals) < (flood / 2 if soak else QUEUED), "the flood is far from over"  # a soak waits longer


async def test_never_more_at_once_than_an_owner_and_a_host_may_have(url: str) -> None:
    options = Options(in_flight=50, per_owner=10, per_host=15)
    async with connect(url), Sink() as sink, Workers(url, options) as workers:
        for owner in ("a", "b", "c"):
            await put_overdue(url, owner, keys(50), sink.hook(takes_ms=100))
        await workers.start()

        async def all_arrived() -> bool:
            return len(await sink.arrivals()) == 150

        await until("all arrive", all_arrived)
        most = await sink.most()

    reserved = options.per_host // 5  # for owners that have nothing in flight
    assert options.per_host - reserved <= most.of_all <= options.per_host
    assert max(most.of_owner.values()) <= options.per_owner


async def test_never_more_at_once_of_an_owner_than_it_may_have_alone(url: str) -> None:
    options = Options(in_flight=50, per_owner=10, per_host=15)
    async with connect(url), Sink() as sink, Workers(url, options) as workers:
        await put_overdue(url, "alone", keys(100), sink.hook(takes_ms=100))
        await workers.start()

        async def all_arrived() -> bool:
            return len(await sink.arrivals()) == 100

        await until("all arrive", all_arrived)
        most = await sink.most()

    assert most.of_owner == {"alone": options.per_owner}
