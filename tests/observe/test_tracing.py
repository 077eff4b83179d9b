"""A span for every attempt, as the SDK's own exporter gets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, get_current_span

from tickler import (
    Delivery,
    GiveUp,
    InvalidInput,
    ManualClock,
    Policy,
    PythonTarget,
    RetryLater,
    Schedule,
    Target,
    Tickler,
    connect,
)
from tickler.cli.tracing import trace_if_asked
from tickler.observe.tracing import tracing

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
MINUTE_MS = 60_000
WORK = PythonTarget("work")


class Spans:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
async def t(spans: Spans) -> AsyncIterator[Tickler]:
    async with connect("memory://", clock=ManualClock(NOW_MS), allow_networks=("127.0.0.0/8",)) as tickler:
        tickler.deliver_through(tracing(spans.provider))
        yield tickler


async def fire(t: Tickler, target: Target | str = WORK, policy: Policy | None = None) -> None:
    """Put a schedule, and deliver it a minute later."""
    await t.schedules.put(Schedule(owner="u1", key="k", when="* * * * *", target=target, policy=policy or Policy()))
    clock = t.clock
    assert isinstance(clock, ManualClock)
    clock.set(NOW_MS + MINUTE_MS)
    await t.tick(budget_ms=10_000)


async def test_an_attempt_is_a_span_that_says_what_it_was_about_and_what_came_of_it(t: Tickler, spans: Spans) -> None:
    ids: list[str] = []
    t.handler("work")(lambda delivery: ids.append(delivery.id))
    await fire(t)
    (span,) = spans.all
    assert span.name == "tickler.deliver"
    assert span.attributes is not None
    assert dict(span.attributes) == {
        "tickler.fire_id": ids[0],
        "tickler.owner": "u1",
        "tickler.key": "k",
        "tickler.nominal": "2030-11-20T12:01:00+00:00",
        "tickler.attempt": 1,
        "tickler.target": "python",
        "tickler.outcome": "delivered",
    }
    assert span.status.status_code is StatusCode.UNSET
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "tickler"


async def test_what_a_handler_traces_is_a_child_of_its_attempt(t: Tickler, spans: Spans) -> None:
    tracer = spans.provider.get_tracer("theirs")

    @t.handler("work")
    async def work(delivery: Delivery) -> None:
        with tracer.start_as_current_span("query"):
            await asyncio.sleep(0)

    await fire(t)
    query, attempt = spans.all
    assert query.parent is not None
    assert query.parent.span_id == attempt.context.span_id
    assert not get_current_span().get_span_context().is_valid, "and nothing is left of it"


@pytest.mark.parametrize(
    ("error", "outcome", "says"),
    [
        (ValueError("no"), "retry", "ValueError: no"),
        (GiveUp("never"), "give_up", "never"),
        (TimeoutError(), "retry", "TimeoutError: "),
        (RetryLater(after=5, counts=True, reason="rate limited"), "retry", "rate limited"),
    ],
)
async def test_a_failure_is_an_error_with_its_reason(t: Tickler, spans: Spans, error: Exception, outcome: str, says: str) -> None:
    @t.handler("work")
    async def work(delivery: Delivery) -> None:
        raise error

    await fire(t)
    (span,) = spans.all
    assert span.attributes is not None
    assert (span.attributes["tickler.outcome"], span.status.status_code) == (outcome, StatusCode.ERROR)
    assert span.status.description == says


async def test_a_postponement_is_no_error(t: Tickler, spans: Spans) -> None:
    @t.handler("work")
    async def work(delivery: Delivery) -> None:
        raise RetryLater(after=5, reason="rate limited")

    await fire(t)
    (span,) = spans.all
    assert span.attributes is not None
    assert span.attributes["tickler.outcome"] == "postpone"
    assert span.status.status_code is StatusCode.UNSET
    assert span.events == ()
    (entry,) = (await t.fires.history("u1", "k")).items
    assert entry.happened == "postponed"


async def test_an_attempt_that_takes_too_long_ends_its_span(t: Tickler, spans: Spans) -> None:
    @t.handler("work")
    async def work(delivery: Delivery) -> None:
        await asyncio.sleep(60)

    await fire(t, policy=Policy(timeout=0.05))
    (span,) = spans.all
    assert span.attributes is not None
    assert (span.attributes["tickler.outcome"], span.status.status_code) == ("retry", StatusCode.ERROR)
    assert span.status.description == "timed out, or the worker was stopped"
    assert span.end_time is not None


async def test_an_http_target_is_told_which_span_it_belongs_to(t: Tickler, spans: Spans) -> None:
    heard: list[str] = []

    async def receive(request: web.Request) -> web.Response:
        heard.append(request.headers["traceparent"])
        return web.Response(status=503)

    app = web.Application()
    app.router.add_post("/", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        await fire(t, f"http://127.0.0.1:{runner.addresses[0][1]}/")
    finally:
        await runner.cleanup()
    (span,) = spans.all
    assert heard == [f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"]
    assert span.attributes is not None
    assert (span.attributes["tickler.target"], span.attributes["tickler.status"]) == ("http", 503)
    assert span.status.description == "answered 503 Service Unavailable"


async def test_without_tracing_nothing_goes_along() -> None:
    contexts: list[object] = []
    async with connect("memory://", clock=ManualClock(NOW_MS)) as t:
        t.handler("work")(lambda delivery: contexts.append(delivery.context))
        await fire(t)
    assert contexts == [None]


async def test_the_environment_asks_for_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connect("memory://", clock=ManualClock(NOW_MS)) as t:
        trace_if_asked(t, {})
        trace_if_asked(t, {"TICKLER_TRACES": "0"})
        assert t._wraps == []
        with pytest.raises(InvalidInput, match="TICKLER_TRACES: 'yes' is invalid: use 0 or 1"):
            trace_if_asked(t, {"TICKLER_TRACES": "yes"})
        trace_if_asked(t, {"TICKLER_TRACES": "1"})
        assert len(t._wraps) == 1
        t.handler("work")(lambda delivery: None)
        await fire(t)  # by nobody's provider: it does no harm
        assert (await t.fires.history("u1", "k")).items[0].happened == "delivered"
        monkeypatch.setitem(__import__("sys").modules, "opentelemetry.propagate", None)
        monkeypatch.delitem(__import__("sys").modules, "tickler.observe.tracing")
        with pytest.raises(InvalidInput, match=r"opentelemetry is not installed: pip install 'ticklerfile\[traces\]'"):
            trace_if_asked(t, {"TICKLER_TRACES": "1"})
