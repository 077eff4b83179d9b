"""One attempt: whatever a deliverer does, it ends in an outcome and in a settlement that every store can keep."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Literal

import pytest

from tickler import At, Cron, Delivery, HttpTarget, Outcome, Policy, PythonTarget, Target
from tickler.clock import ManualClock
from tickler.deliver.attempt import MAX_DETAIL_BYTES, Attempts, host_of
from tickler.deliver.listeners import Listeners, OnDispatch
from tickler.deliver.target_registry import MAX_LABELS, TargetRegistry
from tickler.deliver.targets.python import Handlers
from tickler.fires import Fire
from tickler.model.delivery import Verdict
from tickler.model.fire import MAX_ANSWER_BYTES, Claim, Settlement, fire_id
from tickler.model.policy import DEFAULT_POLICY
from tickler.model.schedule import Id, StoredSchedule
from tickler.when import When

from .at_work import AT_MOST_ONCE
from .virtual_time import START_MS, LoopClock, in_virtual_time

WAIT = Policy(overlap="wait")
ONCE = At("2030-11-20T12:00:00Z")  # START_MS
OK = Outcome(verdict="delivered", status=200)

Behave = Callable[[Delivery], Awaitable[Outcome]]


class Pigeon(Target, frozen=True, tag="pigeon"):
    """A kind of target of this test alone."""

    to: str = "home"


class Dovecote:
    """Delivers to pigeons as `behave` says."""

    def __init__(self, behave: Behave, *, bounded: bool = False, opens: BaseException | None = None) -> None:
        self._behave = behave
        self._opens = opens
        self.closes: BaseException | None = None
        self.bounded = bounded
        self.happened: list[str] = []

    async def open(self) -> None:
        self.happened.append("opens")
        if self._opens is not None:
            raise self._opens

    async def close(self) -> None:
        self.happened.append("closes")
        if self.closes is not None:
            raise self.closes

    async def deliver(self, delivery: Delivery, target: Pigeon) -> Outcome:
        return await self._behave(delivery)


async def fine(delivery: Delivery) -> Outcome:
    return OK


def answering(answer: object, seconds: float = 0) -> Behave:
    """Return a behaviour that waits, and then returns the answer, or raises it if it is an error."""

    async def behave(delivery: Delivery) -> Outcome:
        await asyncio.sleep(seconds)
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[return-value]  # nonsense among them

    return behave


def attempts(behave: Behave = fine, *callbacks: OnDispatch, bounded: bool = False) -> Attempts:
    targets = TargetRegistry({Pigeon: Dovecote(behave, bounded=bounded)})
    return Attempts(targets, LoopClock(), "w1", Listeners(callbacks))


def claim(
    policy: Policy = DEFAULT_POLICY,
    *,
    attempt: int = 1,
    when: When = Cron("* * * * *"),  # noqa: B008  # a value
    delete_after: bool | None = None,
    version: int = 1,
    by_hand: bool = False,
    target: Target | None = Pigeon(),  # noqa: B008
) -> Claim:
    """Return a claim as a store does: with a fire, unless it is at most once and was not opened by hand."""
    schedule = StoredSchedule(
        owner="u1",
        key="digest",
        when=when,
        target=target,
        payload={"n": 1},
        policy=policy,
        version=version,
        created_at=START_MS,
        updated_at=START_MS,
        state="active",
        delete_after=delete_after,  # type: ignore[arg-type]  # None: not given
    )
    fire = Fire(
        id=fire_id("u1", "digest", START_MS, triggered=by_hand),
        owner="u1",
        key="digest",
        nominal_at=START_MS,
        opened_at=START_MS,
        attempt=attempt,
        deliver_after=START_MS + 60_000,
        worker="w1",
    )
    owed = by_hand or policy.delivery == "at-least-once"
    return Claim(schedule, START_MS, fire if owed else None, START_MS)


async def made(behave: Behave, policy: Policy = DEFAULT_POLICY, *, bounded: bool = False) -> tuple[Settlement, Outcome]:
    return await attempts(behave, bounded=bounded).make(claim(policy))


# What a deliverer is handed.


@pytest.mark.parametrize("policy", [DEFAULT_POLICY, AT_MOST_ONCE], ids=["at least once", "at most once"])
@in_virtual_time
async def test_a_deliverer_is_handed_all_there_is_to_know_of_the_fire(policy: Policy) -> None:
    handed: list[Delivery] = []

    async def note(delivery: Delivery) -> Outcome:
        handed.append(delivery)
        return OK

    await asyncio.sleep(2.5)
    await attempts(note).make(claim(policy, attempt=3 if policy is DEFAULT_POLICY else 1))
    assert handed == [
        Delivery(
            id=fire_id("u1", "digest", START_MS),
            owner="u1",
            key="digest",
            nominal_at=START_MS,
            attempt=3 if policy is DEFAULT_POLICY else 1,
            payload={"n": 1},
            target=Pigeon(),
            timeout_s=30.0,
            started_at=START_MS + 2_500,
        )
    ]


@pytest.mark.parametrize(
    ("policy_s", "left_s", "timeout_s"), [(30, None, 30), (30, 12.5, 12.5), (30, 90, 30), (30, 0, 0), (0.25, 1, 0.25)]
)
@in_virtual_time
async def test_the_time_for_an_attempt_is_what_the_policy_allows_or_what_is_left_of_a_tick(
    policy_s: float, left_s: float | None, timeout_s: float
) -> None:
    """The limit is passed to the deliverer, and enforced."""
    told: list[float] = []

    async def wait(delivery: Delivery) -> Outcome:
        told.append(delivery.timeout_s)
        await asyncio.sleep(3_600)
        return OK

    settlement, outcome = await attempts(wait).make(claim(Policy(timeout=policy_s)), left_s)
    assert told == [timeout_s]
    assert outcome.detail == f"no answer within {timeout_s:g} s"
    assert settlement.entry is not None
    assert settlement.entry.duration_ms == round(timeout_s * 1000)


# What becomes of it.


@in_virtual_time
async def test_what_came_of_an_attempt_is_in_the_settlement_and_its_entry() -> None:
    answer = Outcome(verdict="retry", status=503, detail="answered 503", answer="busy", retry_after_ms=7_000, duration_ms=99_999)
    policy = Policy(backoff=[0])
    settlement, outcome = await made(answering(answer, 1.5), policy)
    assert (settlement.id, settlement.fire, settlement.then) == (Id("u1", "digest"), claim(policy).fire, "retry")
    assert settlement.deliver_after == START_MS + 1_500 + 7_000
    entry = settlement.entry
    assert entry is not None
    assert (entry.owner, entry.key, entry.nominal_at, entry.at) == ("u1", "digest", START_MS, START_MS)
    assert (entry.happened, entry.fire_id, entry.attempt) == ("failed", fire_id("u1", "digest", START_MS), 1)
    assert (entry.status, entry.detail, entry.answer, entry.worker) == (503, "answered 503", "busy", "w1")
    assert entry.duration_ms == outcome.duration_ms == 1_500, "it is measured here, whatever the deliverer says"


async def test_a_clock_that_is_set_back_meanwhile_makes_no_negative_duration() -> None:
    clock = ManualClock(START_MS)

    async def sets_it_back(delivery: Delivery) -> Outcome:
        clock.advance(-60)
        return OK

    _, outcome = await Attempts(TargetRegistry({Pigeon: Dovecote(sets_it_back)}), clock, "w1", Listeners()).make(claim())
    assert outcome.duration_ms == 0


class Speechless(Exception):
    """An error whose __str__ fails."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("bounded", [False, True], ids=["unbounded", "bounded"])
@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ConnectionError("refused"), "ConnectionError: refused"),
        (TimeoutError("of its own"), "TimeoutError: of its own"),
        (Speechless(), "Speechless"),
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError("what it waited for"), "CancelledError: what it waited for"),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
@in_virtual_time
async def test_what_a_deliverer_raises_is_a_failure_that_is_tried_again(raised: BaseException, said: str, bounded: bool) -> None:
    settlement, outcome = await made(answering(raised), bounded=bounded)
    assert (outcome.verdict, outcome.status, outcome.detail) == ("retry", 0, said)
    assert settlement.then == "retry"


@pytest.mark.parametrize("bounded", [False, True], ids=["unbounded", "bounded"])
@pytest.mark.parametrize(
    ("answer", "named"),
    [(None, "NoneType"), ("delivered", "str"), (200, "int"), (True, "bool"), ([OK], "list")],
)
@in_virtual_time
async def test_an_answer_that_is_no_outcome_is_a_failure_that_names_the_deliverer(
    answer: object, named: str, bounded: bool
) -> None:
    settlement, outcome = await made(answering(answer), bounded=bounded)
    assert (settlement.then, outcome.detail) == ("retry", f"TypeError: Dovecote returned a {named}: return an Outcome")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (PythonTarget("work"), "the worker has no handler 'work': register it there, or correct the name"),
        (
            HttpTarget("https://example.org"),
            "the worker cannot deliver to HttpTarget: install it with `pip install 'ticklerfile[http]'`",
        ),
    ],
)
@in_virtual_time
async def test_a_kind_of_target_that_nothing_here_delivers_to_is_released_for_others(target: Target, said: str) -> None:
    settlement, outcome = await attempts().make(claim(target=target))
    assert (settlement.then, settlement.entry, settlement.reason) == ("release", None, f"released: {said}")
    assert (outcome.detail, outcome.obstacle) == (said, "missing")
    assert attempts().targets.missing(claim(target=target)) == outcome


@in_virtual_time
async def test_a_schedule_without_a_target_fails_and_is_tried_again() -> None:
    settlement, outcome = await attempts().make(claim(target=None))
    assert settlement.then == "retry"
    assert outcome.detail is not None
    assert outcome.detail.startswith("its schedule has no target that this worker can read: put it with one")


@pytest.mark.parametrize(
    "wrong",
    [
        {"answer": b"x"},
        {"detail": 5},
        {"retry_after_ms": "7"},
        {"retry_after_ms": -1},
        {"status": "200"},
        {"verdict": "nonsense"},
        {"verdict": "release", "obstacle": "nonsense"},
    ],
    ids=repr,
)
@in_virtual_time
async def test_an_outcome_whose_fields_are_nonsense_is_a_failure_that_is_recorded(wrong: dict[str, object]) -> None:
    settlement, outcome = await made(answering(Outcome(**{"verdict": "delivered", **wrong})))  # type: ignore[arg-type]
    assert settlement.entry is not None
    assert (settlement.then, settlement.entry.happened) == ("retry", "failed")
    assert "TypeError: Dovecote returned" in str(outcome.detail)


@in_virtual_time
async def test_no_target_puts_off_its_next_attempt_for_more_than_a_week() -> None:
    settlement, _ = await made(answering(Outcome(verdict="retry", retry_after_ms=10**20)), Policy(backoff=[0]))
    assert settlement.deliver_after is not None
    assert settlement.entry is not None
    assert settlement.deliver_after - settlement.entry.at == 7 * 86_400_000


@in_virtual_time
async def test_whatever_a_handler_raises_is_a_failure_that_is_tried_again() -> None:
    class Stop(BaseException):
        pass

    settlement, outcome = await made(answering(Stop("x")))
    assert (settlement.then, outcome.detail) == ("retry", "Stop: x")


# How long it may take.


@in_virtual_time
async def test_one_that_is_bounded_ends_by_itself_and_is_not_cut_off() -> None:
    _, outcome = await made(answering(OK, 40), Policy(timeout=30), bounded=True)
    assert (outcome.verdict, outcome.duration_ms) == ("delivered", 40_000)


@in_virtual_time
async def test_one_that_turns_its_timeout_into_another_error_ran_out_of_time_all_the_same() -> None:
    async def hides_it(delivery: Delivery) -> Outcome:
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            raise ConnectionError("aborted") from None
        return OK

    _, outcome = await made(hides_it, Policy(timeout=2))
    assert (outcome.verdict, outcome.detail) == ("retry", "no answer within 2 s")


@in_virtual_time
async def test_one_that_answers_in_spite_of_its_timeout_is_believed() -> None:
    async def finishes(delivery: Delivery) -> Outcome:
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            return OK
        raise AssertionError("it was not cancelled")

    settlement, outcome = await made(finishes, Policy(timeout=2))
    assert (settlement.then, outcome.status, outcome.duration_ms) == ("done", 200, 2_000)


@pytest.mark.parametrize("bounded", [False, True], ids=["unbounded", "bounded"])
@in_virtual_time
async def test_an_attempt_that_is_cancelled_from_outside_is_cancelled(bounded: bool) -> None:
    """The worker decides what follows: a deliverer that was cancelled has not failed."""
    heard: list[Outcome] = []
    making = attempts(answering(OK, 60), lambda delivery, outcome: heard.append(outcome), bounded=bounded)
    task = asyncio.create_task(making.make(claim(Policy(timeout=300))))
    await asyncio.sleep(5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard == []


@in_virtual_time
async def test_what_waits_for_a_task_that_somebody_cancelled_has_failed_and_was_not_stopped() -> None:
    async def waits(delivery: Delivery) -> Outcome:
        inner = asyncio.create_task(asyncio.sleep(60))
        asyncio.get_running_loop().call_later(1, inner.cancel)
        await inner
        return OK

    settlement, outcome = await made(waits)
    assert (settlement.then, outcome.detail, outcome.duration_ms) == ("retry", "CancelledError: ", 1_000)


class Stubborn:
    """Ignores its cancellation until the test releases it."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()

    async def __call__(self, delivery: Delivery) -> Outcome:
        while not self.let_go.is_set():
            with suppress(asyncio.CancelledError):
                await self.let_go.wait()
        return OK


@in_virtual_time
async def test_one_that_will_not_be_cancelled_is_abandoned_counted_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    stubborn = Stubborn()
    making = attempts(stubborn)
    for number in (1, 2, 3):
        settlement, outcome = await making.make(claim(Policy(timeout=2)))
        assert (settlement.then, outcome.detail, outcome.duration_ms) == ("retry", "no answer within 2 s", 7_000)
        assert (len(making.abandoned), making.counts["abandoned"]) == (number, number)
    stubborn.let_go.set()
    await asyncio.sleep(1)
    assert (len(making.abandoned), making.counts["abandoned"]) == (0, 3)
    assert caplog.text.count("did not end after its timeout and is abandoned") == 1


@in_virtual_time
async def test_one_that_puts_something_away_when_it_is_cancelled_has_a_little_time_for_it() -> None:
    put_away = False

    async def tidy(delivery: Delivery) -> Outcome:
        nonlocal put_away
        try:
            await asyncio.sleep(3_600)
        finally:
            await asyncio.sleep(4)
            put_away = True
        return OK

    making = attempts(tidy)
    _, outcome = await making.make(claim(Policy(timeout=2)))
    assert (outcome.detail, put_away, len(making.abandoned)) == ("no answer within 2 s", True, 0)


@in_virtual_time
async def test_each_attempt_ends_at_its_own_time_whichever_began_first() -> None:
    making = attempts(answering(OK, 3_600))
    loop, ends = asyncio.get_running_loop(), list[float]()

    async def make(timeout_s: float) -> None:
        await making.make(claim(Policy(timeout=timeout_s)))
        ends.append(loop.time() - began)

    began = loop.time()
    async with asyncio.TaskGroup() as group:
        for timeout_s in (20, 5, 30, 5, 40):
            group.create_task(make(timeout_s))
    assert ends == pytest.approx([5, 5, 20, 30, 40])


@pytest.mark.parametrize("raised", [SystemExit(3), GeneratorExit(), asyncio.CancelledError()], ids=repr)
@in_virtual_time
async def test_what_would_end_a_program_is_a_failure_when_a_handler_raises_it(raised: BaseException) -> None:
    settlement, outcome = await made(answering(raised))
    assert (settlement.then, outcome.detail) == ("retry", f"{type(raised).__name__}: {raised}")


@in_virtual_time
async def test_who_interrupts_the_program_means_all_of_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        await made(answering(KeyboardInterrupt()))


# Listeners.


@in_virtual_time
async def test_listeners_hear_one_after_the_other_and_those_that_fail_silence_nobody(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[tuple[str, str, int, int]] = []

    def note(name: str) -> OnDispatch:
        async def listener(delivery: Delivery, outcome: Outcome) -> None:
            await asyncio.sleep(1)
            heard.append((name, delivery.id, outcome.status, outcome.duration_ms))

        return listener

    def fails(delivery: Delivery, outcome: Outcome) -> None:
        raise RuntimeError("the metrics are down")

    def takes_nothing() -> None:
        raise AssertionError("never called")

    making = attempts(answering(OK, 2), note("first"), fails, takes_nothing, note("last"))  # type: ignore[arg-type]  # the point
    settlement, outcome = await making.make(claim())
    assert heard == [(name, fire_id("u1", "digest", START_MS), 200, 2_000) for name in ("first", "last")]
    assert (settlement.then, outcome.status) == ("done", 200)
    assert caplog.text.count("the delivery is not affected") == 2


@in_virtual_time
async def test_a_listener_that_is_cut_off_does_not_take_the_outcome_along() -> None:
    """It was delivered: if that were forgotten, it would be delivered twice."""
    begun, heard = asyncio.Event(), list[str]()

    async def slow(delivery: Delivery, outcome: Outcome) -> None:
        begun.set()
        await asyncio.sleep(3_600)

    task = asyncio.create_task(attempts(fine, slow, lambda delivery, outcome: heard.append(outcome.verdict)).make(claim()))
    await begun.wait()
    task.cancel()
    settlement, outcome = await task
    assert (settlement.then, outcome.verdict, heard) == ("done", "delivered", ["delivered"])


@in_virtual_time
async def test_the_outcome_is_as_it_was_when_listeners_began() -> None:
    """Delays count from the end of the attempt, not from the end of the callbacks."""

    async def slow(delivery: Delivery, outcome: Outcome) -> None:
        await asyncio.sleep(100)

    failing = answering(Outcome(verdict="retry", retry_after_ms=1_000))
    settlement, _ = await attempts(failing, slow).make(claim(Policy(backoff=[0])))
    assert settlement.deliver_after == START_MS + 1_000


# What every store can keep.

CUT: list[tuple[str, str]] = [
    ("a\0b\0", "a\ufffdb\ufffd"),
    ("half \ud800 a pair \udfff", "half ? a pair ?"),
    ("x" * 5_000, "x" * 1_000),
    ("x" * 1_000, "x" * 1_000),
    ("é" * 1_000, "é" * 500),
    ("x" + "é" * 1_000, "x" + "é" * 499),  # the limit lies within a character
    ("xx" + "€" * 1_000, "xx" + "€" * 332),
    ("😀" * 1_000, "😀" * 250),
    ("x" * 999 + "😀", "x" * 999),
    ("x" * 997 + "\0\0", "x" * 997 + "\ufffd"),  # what a NUL becomes is longer than it
    ("x" * 998 + "\0", "x" * 998),
    ("", ""),
]


@pytest.mark.parametrize(("said", "kept"), CUT, ids=lambda text: ascii(text[-12:]))
@in_virtual_time
async def test_what_went_wrong_is_kept_without_nulls_and_half_characters_up_to_its_limit(said: str, kept: str) -> None:
    settlement, _ = await made(answering(Outcome(verdict="retry", detail=said)))
    assert settlement.entry is not None
    assert settlement.entry.detail == kept
    assert len(kept.encode()) <= MAX_DETAIL_BYTES


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (None, None),
        ("x" * 2_048 + "y", "x" * 2_048),
        ("xy" + "€" * 2_048, "xy" + "€" * 682),
        ("x" * 2_046 + "\0", "x" * 2_046),
        ("\ud83d" * 3_000, "?" * 2_048),
    ],
    ids=["nothing", "ascii", "within a character", "null", "half characters"],
)
@in_virtual_time
async def test_of_an_answer_the_first_2_kb_are_kept(said: str | None, kept: str | None) -> None:
    settlement, outcome = await made(answering(Outcome(verdict="delivered", answer=said)))
    assert settlement.entry is not None
    assert settlement.entry.answer == kept
    assert len((kept or "").encode()) <= MAX_ANSWER_BYTES
    assert outcome.answer == said, "whoever listens gets all of it"


@in_virtual_time
async def test_what_an_error_says_is_cleaned_too() -> None:
    settlement, _ = await made(answering(ValueError("bad byte \0 in " + "€" * 1_000)))
    assert settlement.entry is not None
    assert settlement.entry.detail is not None
    assert settlement.entry.detail.startswith("ValueError: bad byte \ufffd in €")
    assert 998 <= len(settlement.entry.detail.encode()) <= 1_000


# What follows.

Then = Literal["done", "retry", "dead"]


@pytest.mark.parametrize(
    ("verdict", "policy", "attempt", "then"),
    [
        ("delivered", DEFAULT_POLICY, 10, "done"),
        ("retry", Policy(attempts=3), 2, "retry"),
        ("retry", Policy(attempts=3), 3, "dead"),
        ("give_up", DEFAULT_POLICY, 1, "dead"),
        ("gone", DEFAULT_POLICY, 1, "dead"),
    ],
)
@in_virtual_time
async def test_what_becomes_of_a_fire_follows_from_verdict_and_policy(
    verdict: Verdict, policy: Policy, attempt: int, then: Then
) -> None:
    settlement, _ = await attempts(answering(Outcome(verdict=verdict))).make(claim(policy, attempt=attempt))
    assert settlement.then == then
    assert (settlement.deliver_after is None) is (then != "retry")
    assert settlement.entry is not None
    assert settlement.entry.gave_up is (then == "dead")


@pytest.mark.parametrize("verdict", ["delivered", "retry", "give_up", "gone"])
@in_virtual_time
async def test_what_is_delivered_at_most_once_is_done_whatever_came_of_it(verdict: Verdict) -> None:
    settlement, _ = await made(answering(Outcome(verdict=verdict, retry_after_ms=5)), AT_MOST_ONCE)
    assert (settlement.fire, settlement.then, settlement.deliver_after) == (None, "done", None)
    assert settlement.entry is not None
    failed = verdict != "delivered"
    assert (settlement.entry.happened, settlement.entry.attempt) == ("failed" if failed else "delivered", 1)
    assert settlement.entry.gave_up is failed


@in_virtual_time
async def test_what_is_delivered_at_most_once_and_was_opened_by_hand_is_dead_after_its_first_attempt() -> None:
    settlement, _ = await attempts(answering(Outcome(verdict="retry"))).make(claim(AT_MOST_ONCE, by_hand=True))
    assert (settlement.then, settlement.fire is not None) == ("dead", True)


@pytest.mark.parametrize(
    "policy", [DEFAULT_POLICY, AT_MOST_ONCE, Policy(attempts=1)], ids=["owed", "at most once", "one attempt"]
)
@pytest.mark.parametrize("verdict", ["delivered", "retry", "give_up", "gone"])
@pytest.mark.parametrize(
    ("when", "delete_after", "goes"),
    [
        (ONCE, None, True),
        (ONCE, False, False),
        (Cron("* * * * *"), None, False),
        (Cron("* * * * *"), True, True),
    ],
    ids=["a one-shot", "a one-shot to keep", "recurring", "recurring to go"],
)
@in_virtual_time
async def test_a_schedule_goes_after_a_delivery_only_and_if_it_wants_to(
    when: When, delete_after: bool | None, goes: bool, verdict: Verdict, policy: Policy
) -> None:
    making = attempts(answering(Outcome(verdict=verdict)))
    settlement, _ = await making.make(claim(policy, when=when, delete_after=delete_after))
    assert settlement.delete_schedule is (goes and verdict == "delivered")


@pytest.mark.parametrize(
    ("policy", "attempt", "then"),
    [(DEFAULT_POLICY, 1, "retry"), (Policy(attempts=3), 3, "dead"), (AT_MOST_ONCE, 1, "done")],
    ids=["attempts left", "none left", "at most once"],
)
@in_virtual_time
async def test_an_attempt_that_was_cut_off_is_a_failure_with_the_reason(policy: Policy, attempt: int, then: Then) -> None:
    await asyncio.sleep(4)
    settlement = attempts().cut_off(claim(policy, attempt=attempt, when=ONCE), "the worker \0 was stopped")
    assert (settlement.then, settlement.delete_schedule) == (then, False)
    entry = settlement.entry
    assert entry is not None
    assert (entry.happened, entry.attempt, entry.status, entry.at) == ("failed", attempt, 0, START_MS + 4_000)
    assert entry.detail == "the worker \ufffd was stopped"
    if then == "retry":
        assert settlement.deliver_after is not None
        assert (
            START_MS + 4_000
            <= settlement.deliver_after
            <= START_MS + 4_000 + DEFAULT_POLICY.backoff[0] // timedelta(milliseconds=1)
        )


# Opening and closing.


async def opened(*deliverers: Dovecote, shared: Sequence[type[Target]] = ()) -> Attempts:
    kinds: list[type[Target]] = [Pigeon, PythonTarget, HttpTarget]
    by_kind = dict(zip(kinds, deliverers, strict=False)) | dict.fromkeys(shared, deliverers[0])
    making = Attempts(TargetRegistry(by_kind), LoopClock(), "w1", Listeners())
    await making.open()
    return making


async def test_a_deliverer_of_several_kinds_is_opened_and_closed_once() -> None:
    cote = Dovecote(fine)
    making = await opened(cote, shared=[HttpTarget, PythonTarget])
    assert cote.happened == ["opens"]
    await making.close()
    await making.close()
    assert cote.happened == ["opens", "closes"]


@pytest.mark.parametrize("error", [OSError("no"), asyncio.CancelledError(), KeyboardInterrupt()], ids=repr)
async def test_where_one_does_not_open_none_stays_open_and_the_error_is_the_callers(error: BaseException) -> None:
    first, broken, never = Dovecote(fine), Dovecote(fine, opens=error), Dovecote(fine)
    with pytest.raises(type(error)):
        await opened(first, broken, never)
    assert (first.happened, broken.happened, never.happened) == (["opens", "closes"], ["opens"], [])


async def test_one_that_does_not_close_leaves_no_other_open(caplog: pytest.LogCaptureFixture) -> None:
    first, broken, last = (Dovecote(fine) for _ in range(3))
    broken.closes = OSError("the socket is gone")
    await (await opened(first, broken, last)).close()
    assert [each.happened for each in (first, broken, last)] == [["opens", "closes"]] * 3
    assert "a Dovecote did not close" in caplog.text


# Limits on hosts.


@pytest.mark.parametrize(
    ("target", "host"),
    [
        (HttpTarget("https://API.example.org/a?b"), "api.example.org:443"),
        (HttpTarget("https://api.example.org.:443"), "api.example.org:443"),
        (HttpTarget("https://api.example.org:8443/a"), "api.example.org:8443"),
        (HttpTarget("http://[2001:db8::1]:80/"), "2001:db8::1:80"),
        (PythonTarget("work"), "work"),
        (Pigeon("home"), "Pigeon"),
        (None, "NoneType"),
    ],
    ids=str,
)
def test_a_limit_on_a_host_counts_where_http_goes_to_and_other_kinds_by_name(target: Target | None, host: str) -> None:
    assert host_of(target) == host


def test_a_worker_with_more_handlers_than_it_can_name_says_that_it_delivers_to_python_targets() -> None:
    handlers = Handlers()
    targets = TargetRegistry({HttpTarget: handlers, PythonTarget: handlers}, handlers)
    for n in range(MAX_LABELS - 1):  # beside the one that every worker has
        handlers.register(f"h{n:03}", print)
    assert targets.labels() == ["http", "python:echo", *(f"python:h{n:03}" for n in range(MAX_LABELS - 1))]
    handlers.register("one-more", print)
    assert targets.labels() == ["http", "python"]
