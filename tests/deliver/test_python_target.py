"""Python targets: functions of every kind are called in their way, and whatever they do becomes an outcome."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Generator
from contextvars import ContextVar

import pytest

from tickler import Delivery, GiveUp, InvalidInput, Outcome, Policy, PythonTarget, RunOptions, Schedule
from tickler.deliver.targets.python import Handler, Handlers
from tickler.model.fire import MAX_ANSWER_BYTES

from .at_work import Bench, soon
from .virtual_time import START_MS, in_virtual_time

TIMEOUT_S = 20.0

request: ContextVar[str] = ContextVar("request", default="none")


def delivery(handler: str = "work") -> Delivery:
    return Delivery(
        id="fire_1",
        owner="u1",
        key="digest",
        nominal_at=START_MS,
        attempt=2,
        payload={"n": 1},
        target=PythonTarget(handler),
        timeout_s=30,
        started_at=START_MS,
    )


async def called(handler: Handler) -> Outcome:
    handlers = Handlers()
    handlers.register("work", handler)
    async with asyncio.timeout(TIMEOUT_S):
        return await handlers.deliver(delivery(), PythonTarget("work"))


# Functions of every kind.


class Plain:
    def __call__(self, fire: Delivery) -> object:
        return fire.key

    def method(self, fire: Delivery) -> object:
        return fire.key

    async def async_method(self, fire: Delivery) -> object:
        await asyncio.sleep(0)
        return fire.key


class Asynchronous:
    async def __call__(self, fire: Delivery) -> object:
        await asyncio.sleep(0)
        return fire.key


class Awaits:
    """An awaitable that is not a coroutine."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def __await__(self) -> Generator[None, None, object]:
        yield from asyncio.sleep(0).__await__()
        return self._answer


async def with_more(more: str, fire: Delivery) -> object:
    return fire.key + more


@pytest.mark.parametrize(
    ("handler", "answer"),
    [
        (lambda fire: fire.key, "digest"),
        (Plain(), "digest"),
        (Plain().method, "digest"),
        (Plain().async_method, "digest"),
        (Asynchronous(), "digest"),
        (functools.partial(with_more, "!"), "digest!"),
        (lambda fire: with_more("?", fire), "digest?"),
        (lambda fire: Awaits(fire.key), "digest"),
    ],
    ids=["lambda", "object", "method", "async method", "async object", "partial", "coroutine", "awaitable"],
)
async def test_whatever_can_be_called_is_and_what_it_returns_is_awaited(handler: Handler, answer: str) -> None:
    assert await called(handler) == Outcome(verdict="delivered", answer=answer)


async def test_an_async_handler_runs_on_the_loop_and_a_plain_one_on_a_thread_of_its_own() -> None:
    where: dict[str, threading.Thread] = {}

    async def on_the_loop(fire: Delivery) -> None:
        where["async"] = threading.current_thread()

    def on_a_thread(fire: Delivery) -> None:
        where["plain"] = threading.current_thread()

    await called(on_the_loop)
    await called(on_a_thread)
    assert where["async"] is threading.current_thread() is not where["plain"]
    assert (where["plain"].name, where["plain"].daemon) == ("tickler-fire_1", True)


async def test_plain_handlers_do_not_hold_up_the_loop_nor_each_other() -> None:
    """As many at once as there are: all of them have to be in it before any may go on."""
    number = 40
    together = threading.Barrier(number, timeout=TIMEOUT_S)
    outcomes = await asyncio.gather(*(called(lambda fire: together.wait() >= 0) for _ in range(number)))
    assert {outcome.answer for outcome in outcomes} == {"true"}


async def test_what_a_plain_handler_returns_to_be_awaited_is_awaited_on_the_loop() -> None:
    where: list[threading.Thread] = []

    async def later() -> None:
        where.append(threading.current_thread())

    def plain(fire: Delivery) -> Awaitable[None]:
        where.append(threading.current_thread())
        return later()

    await called(plain)
    assert where[0] is not where[1] is threading.current_thread()


async def test_plain_handlers_see_the_context_variables_of_the_attempt_and_change_none() -> None:
    def plain(fire: Delivery) -> str:
        seen = request.get()
        request.set("changed")
        return seen

    token = request.set("attempt 2")
    try:
        assert (await called(plain)).answer == "attempt 2"
        assert request.get() == "attempt 2"
    finally:
        request.reset(token)


# What they raise.


def raising(error: BaseException, *, plain: bool) -> Handler:
    def function(fire: Delivery) -> None:
        raise error

    async def coroutine(fire: Delivery) -> None:
        raise error

    return function if plain else coroutine


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
@pytest.mark.parametrize(
    ("error", "said"), [(GiveUp("nobody of that name"), "nobody of that name"), (GiveUp(), "the handler gave up")]
)
async def test_a_handler_that_gives_up_says_why(error: GiveUp, said: str, plain: bool) -> None:
    assert await called(raising(error, plain=plain)) == Outcome(verdict="give_up", detail=said)


async def test_what_is_awaited_for_a_plain_handler_may_give_up_too() -> None:
    async def later() -> None:
        raise GiveUp("in the end")

    assert await called(lambda fire: later()) == Outcome(verdict="give_up", detail="in the end")


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), asyncio.CancelledError("no")], ids=lambda e: type(e).__name__)
async def test_what_a_handler_raises_is_for_the_attempt_to_judge(error: BaseException, plain: bool) -> None:
    with pytest.raises(type(error)) as raised:
        await called(raising(error, plain=plain))
    assert raised.value is error


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
async def test_an_iterator_that_ends_within_a_handler_is_an_error_like_others(plain: bool) -> None:
    """Python lets no coroutine raise it as it is: it would end the waiting code."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        await called(raising(StopIteration(), plain=plain))


# Names.


async def test_a_fire_whose_handler_is_not_registered_here_is_released_and_does_not_name_the_others() -> None:
    handlers = Handlers()
    none = await handlers.deliver(delivery(), PythonTarget("work"))
    assert (none.verdict, none.obstacle) == ("release", "missing")
    assert none.detail == "the worker has no handler 'work': register it there, or correct the name"
    for name in ("other", "digest"):
        handlers.register(name, Plain())
    assert await handlers.deliver(delivery(), PythonTarget("work")) == none
    assert handlers.names == ["digest", "echo", "other"]


async def test_nothing_is_imported_from_the_name_of_a_handler() -> None:
    handlers = Handlers()
    for name in ("os:getcwd", "os.getcwd", "tickler.testing", "__import__('os').getcwd"):
        outcome = await handlers.deliver(delivery(name), PythonTarget(name))
        assert (outcome.verdict, outcome.answer) == ("release", None)


async def test_a_name_is_given_once_and_stays_with_the_first() -> None:
    handlers = Handlers()
    handlers.register("work", lambda fire: "first")
    for again in (lambda fire: "second", Plain()):
        with pytest.raises(InvalidInput, match=r"^handler 'work' is registered already: choose another name"):
            handlers.register("work", again)
    handlers.register("Work", lambda fire: "another")
    assert [(await handlers.deliver(delivery(), PythonTarget(name))).answer for name in ("work", "Work")] == ["first", "another"]


@pytest.mark.parametrize("name", ["", "x" * 129, "a\nb", "\0", None, 5, b"work"], ids=repr)
def test_a_name_that_no_target_could_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="name of a registered handler"):
        Handlers().register(name, Plain())


@pytest.mark.parametrize("handler", [None, "module:function", 5, ["work"]], ids=repr)
def test_what_cannot_be_called_is_no_handler(handler: Handler) -> None:
    with pytest.raises(InvalidInput, match=r"^handler 'work' is a .*: pass a function that takes the delivery"):
        Handlers().register("work", handler)


# What they answer.


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Shown:
    def __repr__(self) -> str:
        return "<shown>"


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (None, None),
        ("as it is", "as it is"),
        ("", ""),
        (0, "0"),
        (False, "false"),
        ({"sent": 3, "to": ["a", "b"]}, '{"sent":3,"to":["a","b"]}'),
        (Shown(), "<shown>"),
        ({"of": Shown()}, "{'of': <shown>}"),
        (Unspeakable(), "a Unspeakable"),
        ("x" * 5_000, "x" * MAX_ANSWER_BYTES),
        (list(range(5_000)), ("[" + ",".join(map(str, range(5_000))))[:MAX_ANSWER_BYTES]),
        ({"half": "\ud800"}, "{'half': '\\ud800'}"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_a_handler_returns_is_shown_in_the_history_and_never_a_failure(answer: object, shown: str | None) -> None:
    async def handler(fire: Delivery) -> object:
        return answer

    assert await called(handler) == Outcome(verdict="delivered", answer=shown)


# Cut off.


async def cut_off(handler: Handler) -> None:
    """As an attempt does it, after the schedule's timeout."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await called(handler)


async def test_an_async_handler_is_cancelled() -> None:
    seen: list[str] = []

    async def waits(fire: Delivery) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    await cut_off(waits)
    assert seen == ["cancelled"]


@pytest.mark.parametrize("ends", ["returns", "raises"])
async def test_a_plain_handler_is_not_waited_for_and_its_late_end_does_no_harm(
    ends: str, caplog: pytest.LogCaptureFixture
) -> None:
    go_on, threads = threading.Event(), list[threading.Thread]()

    def waits(fire: Delivery) -> str:
        threads.append(threading.current_thread())
        go_on.wait(TIMEOUT_S)
        if ends == "raises":
            raise RuntimeError("too late for anybody")
        return "too late"

    await cut_off(waits)
    go_on.set()
    await asyncio.to_thread(threads[0].join, TIMEOUT_S)
    assert await called(lambda fire: "next") == Outcome(verdict="delivered", answer="next")
    assert caplog.records == [], "nothing was raised into the loop"


@in_virtual_time
async def test_a_plain_handler_that_goes_on_is_counted_as_abandoned_until_it_ends() -> None:
    bench, go_on = Bench(), threading.Event()
    bench.tickler.handler("plain")(lambda fire: go_on.wait(TIMEOUT_S))
    for n in range(30):
        target, policy = PythonTarget("plain"), Policy(timeout=2, attempts=1)
        await bench.put(Schedule(owner="u1", key=f"k{n}", when=soon(10), target=target, policy=policy, delete_after=False))
    try:
        async with bench.running(RunOptions(per_owner=1)):
            await asyncio.sleep(60)
            (report,) = await bench.tickler.workers()
            assert report.abandoned == len(await bench.fires("dead")) == 10
            assert {(fire.attempt, fire.worker) for fire in await bench.fires()} == {(0, None)}
    finally:
        go_on.set()


def test_a_plain_handler_that_ends_after_the_loop_is_closed_is_quiet() -> None:
    go_on, threads = threading.Event(), list[threading.Thread]()

    def waits(fire: Delivery) -> None:
        threads.append(threading.current_thread())
        go_on.wait(TIMEOUT_S)

    asyncio.run(cut_off(waits))
    go_on.set()
    threads[0].join(TIMEOUT_S)  # an error of a thread would be a warning, and that fails the test
    assert not threads[0].is_alive()


# Through a worker.


@pytest.mark.parametrize("late", [False, True], ids=["before it runs", "while it runs"])
@in_virtual_time
async def test_a_worker_has_the_handlers_that_are_registered_before_and_while_it_runs(late: bool) -> None:
    bench, handled = Bench(), asyncio.Event()
    every_minute = Schedule(owner="u1", key="digest", when="* * * * *", target=PythonTarget("mine"), policy=Policy(backoff=[1]))
    await bench.put(every_minute)

    async def mine(fire: Delivery) -> None:
        handled.set()

    if not late:
        bench.tickler.handler("mine")(mine)
    async with bench.running():
        await asyncio.sleep(65)
        if late:
            assert not handled.is_set()
            bench.tickler.handler("mine")(mine)
            await asyncio.sleep(60)
        assert handled.is_set()
    happened = await bench.happened()
    assert set(happened) == {"delivered"}
