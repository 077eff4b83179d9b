"""Why a schedule fired or did not: on every store, with what really happened to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest

from tickler import (
    At,
    Cron,
    Delivery,
    GiveUp,
    InvalidInput,
    ManualClock,
    Policy,
    PythonTarget,
    RetryLater,
    RunOptions,
    Schedule,
    Tickler,
    connect,
)
from tickler.clock import to_datetime, to_ms
from tickler.model.schedule import Id, State, StoredSchedule
from tickler.observe import Why
from tickler.observe.human_format import instant, split_at_instants
from tickler.observe.why import explain
from tickler.observe.why_evidence import Evidence
from tickler.observe.why_wording import Fact
from tickler.records.kinds import WORKER
from tickler.records.worker_status import WorkerReport
from tickler.when import Unreadable

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DIGEST = PythonTarget("digest")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def t(any_url: str, clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect(any_url, clock=clock, create=True) as tickler:
        yield tickler


@pytest.fixture
async def memory(clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect("memory://", clock=clock) as tickler:
        yield tickler


async def put(t: Tickler, **fields: object) -> None:
    given: dict[str, object] = {"owner": "u1", "key": "digest", "when": "0 * * * *", "target": DIGEST, **fields}
    await t.schedules.put(Schedule(**given))  # type: ignore[arg-type]  # any field of a schedule


async def alive(t: Tickler, name: str = "w1", doing: str = "working", **fields: object) -> None:
    """A worker has just spoken."""
    now_ms = t.now_ms()
    said: dict[str, object] = {"started_at": now_ms, "seen_at": now_ms, "last_round_at": now_ms, **fields}
    worker = WorkerReport(name=name, doing=doing, **said)  # type: ignore[arg-type]  # any field of a report
    await t._store.records.put(WORKER, name, msgspec.json.encode(worker), now_ms=now_ms)


def says(why: Why, about: str) -> list[str]:
    return [fact.says for fact in why.facts if fact.about == about]


def hindrances(why: Why) -> set[str]:
    return {fact.about for fact in why.facts if not fact.good}


# As it stands now, on every store.


async def test_what_is_not_there_is_said_so(t: Tickler) -> None:
    why = await t.why("u1", "digest")
    assert why.sentence == "no schedule u1/digest, and no history of one: check owner and key"
    assert (why.owner, why.key, why.at, why.now) == ("u1", "digest", None, NOW_MS)


async def test_what_sleeps_says_when_it_fires_next_and_in_which_zone(t: Tickler) -> None:
    await put(t, when="30 9 * * *", tz="Europe/Berlin")
    await alive(t)
    why = await t.why("u1", "digest")
    assert str(why) == why.sentence
    assert why.sentence == (
        "u1/digest is not due yet: it fires next at 2030-11-21 09:30:00 Europe/Berlin (08:30 UTC), in 20 h 30 min"
    )
    assert hindrances(why) == set()
    assert says(why, "workers") == ["1 worker running; one looked for due fires 0 ms ago"]


async def test_what_is_paused_says_by_what_reason(t: Tickler) -> None:
    await put(t)
    await t.schedules.pause("u1", "digest", reason="its target is gone")
    why = await t.why("u1", "digest")
    assert why.sentence == "u1/digest is paused (its target is gone): resume it to fire again"
    assert hindrances(why) == {"workers"}, "nothing is wrong with what somebody paused"
    assert [fact.about for fact in why.facts if fact.idle] == ["definition", "index"]


async def test_what_is_due_while_nobody_works_says_that_nobody_does_and_how_to_start(t: Tickler, clock: ManualClock) -> None:
    await put(t)
    clock.advance(timedelta(hours=1, minutes=12))
    why = await t.why("u1", "digest")
    assert why.sentence == (
        "u1/digest has been due for 12 min, and no worker has run on this store: start one with `tickler work`"
    )
    assert "workers" in hindrances(why)


async def test_a_delivery_is_told_with_its_lateness_and_its_worker(t: Tickler, clock: ManualClock) -> None:
    t.handler("digest")(lambda fire: None)
    await put(t)
    clock.advance(timedelta(hours=1, seconds=2))
    await t.tick()
    why = await t.why("u1", "digest", NOW_MS + HOUR_MS)
    assert why.sentence == "u1/digest's fire of 2030-11-20 13:00:00 UTC was delivered 2 s after its instant"
    (happened,) = says(why, "history")
    assert "delivered at attempt 1" in happened
    assert (await t.why("u1", "digest")).facts[-2] == Fact("history", happened)


async def test_a_failure_that_is_tried_again_says_when_and_why(t: Tickler, clock: ManualClock) -> None:
    @t.handler("digest")
    def fail(fire: object) -> None:
        raise RuntimeError("no mail server")

    await put(t, policy=Policy(backoff=[timedelta(hours=2)]))
    clock.advance(timedelta(hours=1))
    await t.tick()
    await alive(t)
    for at in (None, NOW_MS + HOUR_MS):
        why = await t.why("u1", "digest", at)
        expected = "failed at attempt 1 (RuntimeError: no mail server), and retries at "
        assert why.sentence.startswith(f"u1/digest's fire of 2030-11-20 13:00:00 UTC {expected}")


async def test_what_is_postponed_says_until_when_and_why_and_is_no_hindrance(t: Tickler, clock: ManualClock) -> None:
    errors: list[Exception] = [
        RetryLater(after=timedelta(minutes=10), reason="the bank is closed"),
        RuntimeError("no mail server"),
        RetryLater(after=600),
    ]

    @t.handler("digest")
    def later(fire: Delivery) -> None:
        if errors:
            raise errors.pop(0)

    await put(t, policy=Policy(backoff=[0]))
    clock.advance(timedelta(hours=1))
    await t.tick()
    await alive(t)
    fire, moment = "u1/digest's fire of 2030-11-20 13:00:00 UTC", "2030-11-20 13:10:00 UTC"
    for at in (None, NOW_MS + HOUR_MS):
        why = await t.why("u1", "digest", at)
        assert why.sentence == f"{fire} is postponed until {moment}, in 10 min, because the bank is closed"
        assert hindrances(why) == set()
        (said,) = says(why, "history")
        assert said.startswith("2030-11-20 13:00:00 UTC: postponed at attempt 1 at 2030-11-20 13:00:00 UTC in 0 ms by ")
        assert said.endswith(f", until {moment}: the bank is closed")
    clock.advance(timedelta(minutes=10))
    while (await t.tick()).claimed:
        pass
    await alive(t)
    assert (await t.why("u1", "digest")).sentence == (
        f"{fire} failed once and is postponed until 2030-11-20 13:20:00 UTC, in 10 min, because its target asked for it"
    )
    assert (await t.doctor()).findings == []
    clock.advance(1)
    await t.schedules.delete("u1", "digest")
    why = await t.why("u1", "digest", NOW_MS + HOUR_MS)
    assert why.sentence == f"{fire} was cancelled: its schedule is gone"


async def test_what_was_given_up_says_so_and_how_to_send_it_again(t: Tickler, clock: ManualClock) -> None:
    @t.handler("digest")
    def fail(fire: object) -> None:
        raise GiveUp("no such user")

    await put(t)
    clock.advance(timedelta(hours=1))
    await t.tick()
    (dead,) = (await t.fires.list(state="dead")).items
    why = await t.why("u1", "digest", to_datetime(NOW_MS + HOUR_MS))
    assert why.sentence == (
        f"u1/digest's fire of 2030-11-20 13:00:00 UTC is dead (no such user): retry it with `tickler retry {dead.id}`"
    )
    assert "fire" in hindrances(why)
    clock.advance(1)
    await t.fires.cancel(dead.id, by="ada")
    why = await t.why("u1", "digest", NOW_MS + HOUR_MS)
    assert why.sentence == "u1/digest's fire of 2030-11-20 13:00:00 UTC was cancelled: by ada"


@pytest.mark.parametrize("sends_again", [False, True])
async def test_what_has_fired_its_last_says_what_became_of_that(t: Tickler, clock: ManualClock, sends_again: bool) -> None:
    problem: Exception | None = RuntimeError("no mail server") if sends_again else GiveUp("no such user")

    @t.handler("digest")
    def fail(fire: object) -> None:
        if problem is not None:
            raise problem

    await put(t, when=At("2030-11-20T13:00:00Z"), delete_after=False, policy=Policy(backoff=[timedelta(hours=2)]))
    clock.advance(timedelta(hours=1))
    await t.tick()
    why = await t.why("u1", "digest")
    (fire,) = (await t.fires.list(state="open" if sends_again else "dead")).items
    tried = "failed at attempt 1 (RuntimeError: no mail server), and retries at 2030-11-20 1"
    dead = f"is dead (no such user): retry it with `tickler retry {fire.id}`"
    assert why.sentence.startswith(f"u1/digest's fire of 2030-11-20 13:00:00 UTC {tried if sends_again else dead}")

    problem = None
    clock.advance(timedelta(hours=2))
    if not sends_again:
        await t.fires.retry(fire.id)
    await t.tick()
    sentence = (await t.why("u1", "digest")).sentence
    assert sentence == "u1/digest was delivered at 2030-11-20 15:00:00 UTC and is finished: it will not fire again"


async def test_what_was_given_up_comes_first_until_somebody_sees_to_it_also_when_others_were_delivered_since(
    memory: Tickler, clock: ManualClock
) -> None:
    problem: Exception | None = GiveUp("no such user")

    @memory.handler("digest")
    def fail(fire: object) -> None:
        if problem is not None:
            raise problem

    await put(memory)
    clock.advance(timedelta(hours=1))
    await memory.tick()
    (dead,) = (await memory.fires.list(state="dead")).items
    assert " is dead " in (await memory.why("u1", "digest")).sentence
    problem = None
    for _ in range(3):
        clock.advance(timedelta(hours=1))
        await memory.tick()
    await alive(memory)
    why = await memory.why("u1", "digest")
    assert why.sentence == (
        f"u1/digest's fire of 2030-11-20 13:00:00 UTC is dead (no such user): retry it with `tickler retry {dead.id}`; "
        "it fires next at 2030-11-20 17:00:00 UTC, in 1 h"
    )
    assert dead.id in says(why, "fire")[0]
    assert "fire" in hindrances(why)
    problem = GiveUp("gone again")
    clock.advance(timedelta(hours=1))
    await memory.tick()
    await alive(memory)
    both = (
        "2 fires of u1/digest are dead, the last of 2030-11-20 17:00:00 UTC (gone again): "
        "retry them with `tickler retry --all --owner u1 --key digest`"
    )
    assert (await memory.why("u1", "digest")).sentence == f"{both}; it fires next at 2030-11-20 18:00:00 UTC, in 1 h"
    await memory.schedules.pause("u1", "digest")
    assert (await memory.why("u1", "digest")).sentence == f"{both}; it is paused: resume it to fire again"
    await memory.schedules.resume("u1", "digest")
    problem = RuntimeError("no mail server")
    clock.advance(timedelta(hours=1))
    await memory.tick()
    assert (await memory.why("u1", "digest")).sentence.startswith(
        f"{both}; its fire of 2030-11-20 18:00:00 UTC failed at attempt 1 (RuntimeError: no mail server), and retries"
    )
    for fire in (await memory.fires.list(state="dead")).items:
        await memory.fires.cancel(fire.id)
    assert (await memory.why("u1", "digest")).sentence.startswith("u1/digest's fire of 2030-11-20 18:00:00 UTC failed")


async def test_those_that_are_dead_for_the_same_reason_are_told_together(t: Tickler, clock: ManualClock) -> None:
    @t.handler("digest")
    def fail(fire: object) -> None:
        raise GiveUp("no such user" if clock.now_ms() < NOW_MS + 4 * HOUR_MS else "no such town")

    await put(t)
    for _ in range(4):
        clock.advance(timedelta(hours=1))
        await t.tick()
    (dead,) = [fire for fire in (await t.fires.list(state="dead")).items if fire.reason == "no such town"]
    assert says(await t.why("u1", "digest"), "fire") == [
        "3 fires, 2030-11-20 13:00:00 UTC to 2030-11-20 15:00:00 UTC, are dead (no such user): "
        "retry them with `tickler retry --all --owner u1 --key digest`",
        f"the fire of 2030-11-20 16:00:00 UTC is dead (no such town): retry it with `tickler retry {dead.id}`",
    ]


async def test_an_instant_that_a_rule_skipped_names_the_rule(t: Tickler, clock: ManualClock) -> None:
    t.handler("digest")(lambda fire: None)
    await put(t)
    clock.advance(timedelta(hours=3))
    await t.tick()
    for hour in (1, 2):
        why = await t.why("u1", "digest", NOW_MS + hour * HOUR_MS)
        assert (
            why.sentence
            == f"2030-11-20 {12 + hour}:00:00 UTC of u1/digest was skipped by its missed policy, with 2 instants in all"
        )
    assert "delivered" in (await t.why("u1", "digest", NOW_MS + 3 * HOUR_MS)).sentence


async def test_what_is_gone_is_still_remembered(t: Tickler, clock: ManualClock) -> None:
    t.handler("digest")(lambda fire: None)
    await put(t)
    clock.advance(timedelta(hours=1))
    await t.tick()
    await t.schedules.delete("u1", "digest")
    assert (await t.why("u1", "digest")).sentence.startswith("schedule u1/digest no longer exists")
    assert "was delivered" in (await t.why("u1", "digest", NOW_MS + HOUR_MS)).sentence


# Instants, one by one.


@pytest.mark.parametrize(
    ("fields", "at", "sentence"),
    [
        (
            {},
            NOW_MS + 90 * MINUTE_MS,
            "u1/digest is not scheduled for 2030-11-20 13:30:00 UTC: its instants around that are "
            "2030-11-20 13:00:00 UTC and 2030-11-20 14:00:00 UTC",
        ),
        ({}, NOW_MS + 9 * HOUR_MS, "2030-11-20 21:00:00 UTC is in the future: u1/digest will fire then unless it is changed"),
        (
            {"enabled": False},
            NOW_MS + 9 * HOUR_MS,
            "2030-11-20 21:00:00 UTC is in the future, but u1/digest is paused: resume it to fire again",
        ),
        (
            {},
            NOW_MS - HOUR_MS,
            "u1/digest did not exist at 2030-11-20 11:00:00 UTC: it was created at 2030-11-20 12:00:00 UTC",
        ),
        (
            {"starts_at": NOW_MS + 5 * HOUR_MS},
            NOW_MS + 4 * HOUR_MS,
            "u1/digest starts at 2030-11-20 17:00:00 UTC, after 2030-11-20 16:00:00 UTC",
        ),
        (
            {"ends_at": NOW_MS + 5 * HOUR_MS},
            NOW_MS + 6 * HOUR_MS,
            "u1/digest ended at 2030-11-20 17:00:00 UTC, before 2030-11-20 18:00:00 UTC",
        ),
        (
            {"target": None},
            None,
            "u1/digest has no target, so no worker delivers it: put it with one, or claim it from the index yourself",
        ),
    ],
    ids=["no instant", "to come", "paused", "before it was put", "before it starts", "after it ended", "no target"],
)
async def test_an_instant_at_which_nothing_happened_is_explained(
    memory: Tickler, fields: dict[str, object], at: int | None, sentence: str
) -> None:
    await put(memory, **fields)
    await alive(memory)
    assert (await memory.why("u1", "digest", at)).sentence == sentence


async def test_an_instant_of_which_nothing_is_remembered_says_what_may_have_been(memory: Tickler, clock: ManualClock) -> None:
    await put(memory, enabled=False)
    clock.advance(timedelta(hours=2))
    await memory.schedules.resume("u1", "digest")
    sentence = (await memory.why("u1", "digest", NOW_MS + HOUR_MS)).sentence
    assert sentence.startswith("no history of 2030-11-20 13:00:00 UTC: u1/digest was paused then")


async def test_an_instant_that_is_due_and_not_claimed_is_the_one_that_it_stands_at(memory: Tickler, clock: ManualClock) -> None:
    await put(memory)
    clock.advance(timedelta(hours=1, seconds=1))
    await alive(memory)
    assert (await memory.why("u1", "digest", NOW_MS + HOUR_MS)).sentence == "u1/digest is due now, and about to be claimed"
    clock.advance(30)
    sentence = (await memory.why("u1", "digest", NOW_MS + HOUR_MS)).sentence
    assert sentence == "u1/digest has been due for 31 s although 1 worker looked for due fires: see `tickler doctor`"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"last_round_at": None, "queued": 500}, ": 1 worker has 500 fires queued before it"),
        ({"queued": 1_500}, ": 1 worker has 1,500 fires queued before it"),
        (
            {"last_round_at": None},
            ", and 1 worker is running but has not looked for due fires since: see `tickler doctor`",
        ),
        (
            {"last_round_at": NOW_MS + HOUR_MS - 1},
            ", and 1 worker is running but has not looked for due fires since: see `tickler doctor`",
        ),
        ({"last_round_at": NOW_MS + HOUR_MS}, " although 1 worker looked for due fires: see `tickler doctor`"),
    ],
    ids=["never looked, and has much", "looked, and has much", "never looked", "looked before", "looked"],
)
async def test_of_workers_no_more_is_said_than_they_have(
    memory: Tickler, clock: ManualClock, fields: dict[str, int | None], sentence: str
) -> None:
    await put(memory)
    clock.advance(timedelta(hours=1, seconds=31))
    await alive(memory, "w1", "working", **fields)
    why = await memory.why("u1", "digest")
    assert why.sentence == f"u1/digest has been due for 31 s{sentence}"
    assert (", with " in says(why, "workers")[0]) is ("queued" in fields)


async def test_an_instant_is_shown_so_that_it_can_be_asked_about(memory: Tickler, clock: ManualClock) -> None:
    memory.handler("digest")(lambda fire: None)
    await put(memory, tz="Europe/Berlin")
    clock.advance(0.123)
    await memory.trigger("u1", "digest")
    shown = "2030-11-20 13:00:00.123 Europe/Berlin (12:00 UTC)"
    assert (await memory.why("u1", "digest")).sentence.startswith(f"u1/digest's fire of {shown} is about to be attempted")
    text, zone = shown.rpartition(" (")[0].rsplit(" ", 1)
    at = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    owed = await memory.why("u1", "digest", at)
    await memory.tick()
    done = await memory.why("u1", "digest", at)
    for why in (owed, done):
        assert says(why, "instant") == [f"{shown} was triggered manually"]
        assert "instant" not in hindrances(why)
    assert done.sentence == f"u1/digest's fire of {shown} was delivered 0 ms after its instant"
    assert says(await memory.why("u1", "digest", NOW_MS + 1), "instant") == [
        "2030-11-20 13:00:00.001 Europe/Berlin (12:00 UTC) is not an instant of 0 * * * *"
    ]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Etc/GMT+12"])
def test_a_sentence_is_split_at_its_instants_also_while_clocks_go_back(zone: str) -> None:
    hours = [NOW_MS + 1 + hour * 1_800_000 for hour in range(0, 17_520, 7)]
    hours += [to_ms(datetime(2030, month, day, tzinfo=UTC) + timedelta(minutes=30 * n), "at")
              for month, day in ((10, 26), (10, 27), (4, 6), (4, 7), (11, 3)) for n in range(48)]  # fmt: skip
    for at in hours:
        assert list(split_at_instants(f"due {instant(at, Cron('@daily', zone))}, in 1 d")) == ["due ", at, ", in 1 d"]


@pytest.mark.parametrize(
    "text",
    ["", "2030-13-20 13:00:00 UTC", "2030-11-20 13:00:00 No/Zone (12:00 UTC)", "2030-11-20 13:00:00 Europe/Berlin (13:00 UTC)",
     "0001-01-01 00:00:00 Asia/Tokyo (15:00 UTC)", "2030-11-20T13:00:00 UTC", "٢٠٣٠-11-20 13:00:00 UTC", "13:00:00 UTC"],
)  # fmt: skip
def test_what_only_looks_like_an_instant_stays_text(text: str) -> None:
    assert list(split_at_instants(text)) == [text]


async def test_workers_that_are_there_and_claim_nothing_are_named(memory: Tickler, clock: ManualClock) -> None:
    await put(memory)
    clock.advance(timedelta(hours=1, minutes=1))
    await alive(memory, "w7", "not claiming: its clock is off")
    why = await memory.why("u1", "digest")
    assert why.sentence == "u1/digest has been due for 1 min, and no worker claims anything: w7 is not claiming: its clock is off"
    assert "w7 is not claiming: its clock is off" in says(why, "workers")


async def test_a_worker_that_was_not_heard_of_for_a_minute_is_not_alive(memory: Tickler, clock: ManualClock) -> None:
    await put(memory)
    await alive(memory)
    clock.advance(timedelta(minutes=2))
    sentence = (await memory.why("u1", "digest")).sentence
    assert "but no worker is running, the last one was seen 2 min ago: start one with `tickler work`" in sentence
    await alive(memory, "w2", "stopped")
    clock.advance(5)
    assert "the last one stopped 5 s ago" in (await memory.why("u1", "digest")).sentence


async def test_a_handler_that_no_worker_has_is_named_and_no_other_is(memory: Tickler, clock: ManualClock) -> None:
    await put(memory)
    await alive(memory, delivers_to=["http", "python:secret"])
    lacking = "no running worker has the handler 'digest': start one that does, or correct its target"
    assert (await memory.why("u1", "digest")).sentence.endswith(f"but {lacking}")
    clock.advance(timedelta(hours=1))
    assert (await memory.tick()).released == 1
    await alive(memory, delivers_to=["http", "python:secret"])
    why = await memory.why("u1", "digest", names_workers=False)
    assert "was released without an attempt (the worker has no handler 'digest'" in why.sentence
    assert why.sentence.endswith(f"but {lacking}")
    assert "none of them has the handler 'digest'" in says(why, "workers")
    assert "secret" not in why.sentence + "".join(fact.says for fact in why.facts)

    await alive(memory, "w2", delivers_to=["python:digest"])
    assert "no worker" not in (await memory.why("u1", "digest")).sentence


async def test_a_worker_that_claims_less_says_why_to_those_who_may_know(memory: Tickler) -> None:
    await put(memory)
    await alive(memory, short_of="too many open files")
    assert "w1 claims less: too many open files" in says(await memory.why("u1", "digest"), "workers")
    shown = await memory.why("u1", "digest", names_workers=False)
    assert "too many open files" not in "".join(fact.says for fact in shown.facts)


async def test_a_real_worker_is_seen(memory: Tickler) -> None:
    await put(memory)
    await memory.tick(options=RunOptions(drain=0))
    assert says(await memory.why("u1", "digest"), "history") == ["no fire yet"]


async def test_a_long_history_is_searched_until_the_instant_and_no_further(
    memory: Tickler, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickler.observe.why_evidence.PAGE", 3)
    memory.handler("digest")(lambda fire: None)
    await put(memory)
    for _ in range(10):
        clock.advance(timedelta(hours=1))
        await memory.tick()
    for hour in range(1, 11):
        assert "was delivered" in (await memory.why("u1", "digest", NOW_MS + hour * HOUR_MS)).sentence
    monkeypatch.setattr("tickler.observe.why_evidence.MAX_PAGES", 2)
    sentence = (await memory.why("u1", "digest", NOW_MS + HOUR_MS)).sentence
    assert sentence == "no history of 2030-11-20 13:00:00 UTC found: the history of u1/digest is longer than what was searched"


async def test_a_history_that_was_searched_past_the_instant_holds_nothing_of_it(
    memory: Tickler, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickler.observe.why_evidence.PAGE", 3)
    memory.handler("digest")(lambda fire: None)
    await put(memory)
    for paused in (False, True, False):
        if paused:
            await memory.schedules.pause("u1", "digest")
            clock.advance(timedelta(hours=1))
            await memory.schedules.resume("u1", "digest")
            continue
        for _ in range(4):
            clock.advance(timedelta(hours=1))
            await memory.tick()
    sentence = (await memory.why("u1", "digest", NOW_MS + 5 * HOUR_MS)).sentence
    assert sentence.startswith("no history of 2030-11-20 17:00:00 UTC: u1/digest was paused then")


@pytest.mark.parametrize("at", ["13:00", 5, 1.5])
async def test_what_is_no_instant_is_refused(memory: Tickler, at: object) -> None:
    with pytest.raises(InvalidInput, match="at: "):
        await memory.why("u1", "digest", at)  # type: ignore[arg-type]


def test_an_explanation_needs_no_store() -> None:
    evidence = Evidence(id=Id("u1", "x"), now_ms=NOW_MS, schedule=None, fires=[], history=[], is_complete=True, workers=[])
    assert explain(evidence).sentence.startswith("no schedule u1/x")


@pytest.mark.parametrize(
    ("state", "reason", "sentence"),
    [
        ("finished", None, "u1/x is finished: it will not fire again; give it another `when`"),
        ("unreadable", "no such moon", "u1/x was set aside because it cannot be read (no such moon): put it again"),
        ("unindexed", None, "u1/x is missing from the index: run `tickler doctor --repair`, or put it again"),
    ],
)
@pytest.mark.parametrize("at", [None, NOW_MS])
def test_what_is_not_in_the_index_says_why_not(state: State, reason: str | None, sentence: str, at: int | None) -> None:
    when = Unreadable("phase(moon)", "Mars/Base", "no such moon") if state == "unreadable" else Cron("0 * * * *")
    schedule = StoredSchedule(
        owner="u1", key="x", when=when, target=DIGEST, version=1, created_at=1, updated_at=1, state=state, reason=reason
    )
    evidence = Evidence(id=schedule.id, now_ms=NOW_MS, schedule=schedule, fires=[], history=[], is_complete=True, workers=[])
    why = explain(evidence, at)
    assert sentence in why.sentence if at is None else sentence.partition(":")[0].partition("u1/x ")[2] in why.sentence
    assert "workers" in hindrances(why)
