"""OpenTelemetry traces: one span per attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace
from opentelemetry.propagate import inject
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider, get_tracer

from tickler.clock import to_datetime
from tickler.model.delivery import Deliverer, Delivery, Outcome
from tickler.model.retry_later import RetryLater
from tickler.model.target import HttpTarget, LambdaTarget, PythonTarget, SqsTarget, Target
from tickler.version import VERSION

NAME = "tickler.deliver"

_KINDS: Mapping[type[Target], str] = {HttpTarget: "http", PythonTarget: "python", SqsTarget: "sqs", LambdaTarget: "lambda"}


def tracing(provider: TracerProvider | None = None) -> Callable[[Deliverer[Any]], Deliverer[Any]]:
    """Return the wrapper for `Tickler.deliver_through`. Without a provider, use the process's own."""
    tracer = get_tracer("tickler", VERSION, provider)
    return lambda deliverer: TracedDeliverer(deliverer, tracer)


class TracedDeliverer:
    """Wraps a deliverer: each attempt is one span, current during the attempt.

    HTTP targets get it in `traceparent`; spans of a handler become its children. The span records the outcome of the attempt; the
    policy decides about retries.
    """

    def __init__(self, deliverer: Deliverer[Any], tracer: Tracer) -> None:
        self._deliverer = deliverer
        self._tracer = tracer
        self.bounded = bool(getattr(deliverer, "bounded", False))

    async def open(self) -> None:
        await self._deliverer.open()

    async def close(self) -> None:
        await self._deliverer.close()

    async def deliver(self, delivery: Delivery, target: Any) -> Outcome:
        attributes = _attributes(delivery, target)
        with self._tracer.start_as_current_span(NAME, kind=SpanKind.PRODUCER, attributes=attributes) as span:
            context: dict[str, str] = {}
            inject(context)
            later: RetryLater | None = None
            try:
                outcome = await self._deliverer.deliver(replace(delivery, context=context or None), target)
            except RetryLater as error:  # raised again after the span, which would take it for an error
                outcome, later = Outcome(verdict="retry" if error.counts else "postpone", detail=error.reason), error
            except BaseException as error:
                span.set_attribute("tickler.outcome", "retry")  # any error counts as a failed attempt
                span.set_status(Status(StatusCode.ERROR, _describe(error)))
                raise
            _record(span, outcome)
        if later is not None:
            raise later
        return outcome


def _attributes(delivery: Delivery, target: Target) -> dict[str, str | int]:
    return {
        "tickler.fire_id": delivery.id,
        "tickler.owner": delivery.owner,
        "tickler.key": delivery.key,
        "tickler.nominal": to_datetime(delivery.nominal_at).isoformat(),
        "tickler.attempt": delivery.attempt,
        "tickler.target": _KINDS.get(type(target), type(target).__name__),
    }


def _describe(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "timed out, or the worker was stopped"
    return f"{type(error).__name__}: {error}"


def _record(span: Span, outcome: Outcome) -> None:
    if not span.is_recording():
        return
    span.set_attribute("tickler.outcome", outcome.verdict)
    if outcome.status:
        span.set_attribute("tickler.status", outcome.status)
    if outcome.verdict not in ("delivered", "postpone"):
        span.set_status(Status(StatusCode.ERROR, outcome.detail))
