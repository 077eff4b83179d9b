"""Traces with OpenTelemetry: a span for every attempt, which what it calls can hang on to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace
from opentelemetry.propagate import inject
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider, get_tracer

from tickler.clock import to_datetime
from tickler.model.delivery import Deliverer, Delivery, Outcome
from tickler.model.target import HttpTarget, LambdaTarget, PythonTarget, SqsTarget, Target
from tickler.version import VERSION

NAME = "tickler.deliver"

_KINDS: Mapping[type[Target], str] = {HttpTarget: "http", PythonTarget: "python", SqsTarget: "sqs", LambdaTarget: "lambda"}


def tracing(provider: TracerProvider | None = None) -> Callable[[Deliverer[Any]], Deliverer[Any]]:
    """For `Tickler.deliver_through`: spans by this provider, or by the one that the process has set up."""
    tracer = get_tracer("tickler", VERSION, provider)
    return lambda deliverer: TracedDeliverer(deliverer, tracer)


class TracedDeliverer:
    """Delivers as another does, each attempt in a span of its own, which is the current one meanwhile.

    An HTTP target is told of it by `traceparent`; a handler's own spans become its children. The span says what came of the
    attempt itself; whether the fire is tried again after it is the policy's.
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
            try:
                outcome = await self._deliverer.deliver(replace(delivery, context=context or None), target)
            except BaseException as error:
                span.set_attribute("tickler.outcome", "retry")  # whatever it was
                span.set_status(Status(StatusCode.ERROR, _said(error)))
                raise
            _tell(span, outcome)
            return outcome


def _attributes(delivery: Delivery, target: Target) -> dict[str, str | int]:
    return {
        "tickler.fire_id": delivery.id,
        "tickler.owner": delivery.owner,
        "tickler.key": delivery.key,
        "tickler.nominal": to_datetime(delivery.nominal_at).isoformat(),
        "tickler.attempt": delivery.attempt,
        "tickler.model.target": _KINDS.get(type(target), type(target).__name__),
    }


def _said(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "there was no more time, or the worker was told to stop"
    return f"{type(error).__name__}: {error}"


def _tell(span: Span, outcome: Outcome) -> None:
    if not span.is_recording():
        return
    span.set_attribute("tickler.outcome", outcome.verdict)
    if outcome.status:
        span.set_attribute("tickler.status", outcome.status)
    if outcome.verdict != "delivered":
        span.set_status(Status(StatusCode.ERROR, outcome.detail))
