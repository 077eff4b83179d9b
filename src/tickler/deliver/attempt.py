"""Hands a claim to its target, and turns the outcome into a settlement."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, get_args
from urllib.parse import urlsplit

from msgspec.structs import replace

from tickler.clock import Clock, to_ms
from tickler.deliver import retry
from tickler.deliver.abandonable_task import AbandonableTasks, TaskResult
from tickler.deliver.abandoned import STUCK, Abandoned
from tickler.deliver.listeners import Listeners, log_fields
from tickler.deliver.missing_targets import missing_target
from tickler.deliver.target_registry import MAX_LABELS, TargetRegistry
from tickler.model.delivery import Deliverer, Delivery, Obstacle, Outcome, Verdict
from tickler.model.fire import MAX_ANSWER_BYTES, POSTPONED, Claim, Entry, Happened, Settlement, fire_id, release_reason
from tickler.model.payload import fresh_payload
from tickler.model.retry_later import RetryLater
from tickler.model.target import HttpTarget, LambdaTarget, PythonTarget, SqsTarget, Target, label_of

MAX_DETAIL_BYTES = 1_000
NO_REASON = "its target asked for it"  # for a postponement without a reason

_VERDICTS = get_args(Verdict)
_OBSTACLES = (None, *get_args(Obstacle))
_TEXT = (str, type(None))  # `str | None` would be made anew at every check

OnAttemptAbandoned = Callable[[Delivery, "asyncio.Future[Any]"], None]

log = logging.getLogger("tickler.deliver")


def host_of(target: Target | None) -> str:
    """Return what the limit per host counts by: a host and port, a handler, an ARN; for other kinds, the kind."""
    match target:
        case HttpTarget():
            return _host(target.url)
        case PythonTarget():
            return target.handler
        case SqsTarget() | LambdaTarget():
            return target.arn
    return type(target).__name__


@lru_cache(maxsize=4096)
def _host(url: str) -> str:
    """Return the same text for all spellings of a host and port."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{(parts.hostname or '').rstrip('.')}:{port}"


class Attempts:
    """Makes the attempts of one worker. `abandoned` counts those of all workers of this process; `rng` gives the jitter."""

    def __init__(
        self,
        targets: TargetRegistry,
        clock: Clock,
        worker: str,
        listeners: Listeners,
        abandoned: Abandoned | None = None,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self.targets = targets
        self._deliverers = targets.deliverers
        self._clock = clock
        self.worker = worker
        self.listeners = listeners
        self.abandoned = Abandoned() if abandoned is None else abandoned
        self._rng = rng
        self.counts: Counter[str] = Counter()  # of everything that this worker does
        self._tasks = AbandonableTasks()
        self._logged_labels: set[str] = set()  # of targets whose attempts were abandoned

    async def open(self) -> None:
        await self.targets.open()

    async def close(self) -> None:
        self._tasks.close()
        await self.targets.close()

    def stuck(self, claim: Claim) -> Outcome | None:
        """Return the outcome of a claim whose target has too many abandoned attempts for another to begin; usually None."""
        is_stuck = self.abandoned.too_many(claim.schedule.owner, label_of(claim.schedule.target))
        return STUCK if is_stuck else None

    async def make(
        self, claim: Claim, timeout_s: float | None = None, on_abandoned: OnAttemptAbandoned | None = None
    ) -> tuple[Settlement, Outcome]:
        """Deliver, and return what follows. Raises only a cancellation or a KeyboardInterrupt.

        An attempt that did not begin counts as none, and no listener is notified. `on_abandoned` is called if it is abandoned.
        """
        delivery = self._delivery(claim, timeout_s)
        outcome = await self._deliver(delivery, on_abandoned)
        now_ms = self._clock.now_ms()
        if outcome.verdict == "release":
            return self.released(claim, outcome), outcome
        outcome = replace(outcome, duration_ms=max(now_ms - delivery.started_at, 0))
        outcome = retry.within_bounds(outcome, claim, now_ms)
        await self.listeners.dispatched(delivery, outcome)
        settlement = self.settled(claim, delivery, outcome, now_ms)
        self.listeners.attempt_ended(claim, settlement, outcome)
        return settlement, outcome

    def cut_off(self, claim: Claim, why: str) -> Settlement:
        """Return the settlement of an attempt that this worker no longer waits for."""
        delivery = self._delivery(claim, None)
        return self.settled(claim, delivery, Outcome(verdict="retry", detail=why), delivery.started_at)

    def released(self, claim: Claim, outcome: Outcome) -> Settlement:
        """Return the settlement of an attempt that did not begin: the fire is released, or dead if that lasts too long."""
        delivery = self._delivery(claim, None)
        now_ms = delivery.started_at
        since = retry.unbegun_since(claim.fire, now_ms)
        then, deliver_after = retry.after_release(outcome, since, now_ms, self._rng)
        detail = _clean(outcome.detail, MAX_DETAIL_BYTES) or "the attempt could not begin"
        if then == "dead" or deliver_after is None:
            days = retry.MAX_RELEASE_AGE_MS // 86_400_000
            hopeless = replace(outcome, verdict="give_up", detail=f"{detail}, and no worker could begin it within {days} days")
            return self.settled(claim, delivery, hopeless, now_ms)
        deliver_after = max(deliver_after, claim.due_at)
        is_since_opened = claim.fire is None or since == claim.fire.opened_at
        reason = release_reason(detail, None if is_since_opened else since)
        return Settlement(claim.schedule.id, claim.fire, "release", None, deliver_after, reason=reason)

    def settled(self, claim: Claim, delivery: Delivery, outcome: Outcome, now_ms: int) -> Settlement:
        """Return the settlement of an attempt that ended with this outcome."""
        schedule, delivered = claim.schedule, outcome.verdict == "delivered"
        then, deliver_after = retry.after(outcome, schedule.policy, delivery.attempt, now_ms, self._rng)
        is_postponed, detail = then == "postpone", _clean(outcome.detail, MAX_DETAIL_BYTES)
        if is_postponed:
            detail = detail or NO_REASON
        elif claim.fire is None:
            then, deliver_after = retry.NextStep("done")
        happened: Happened = "delivered" if delivered else "postponed" if is_postponed else "failed"
        entry = Entry(
            owner=delivery.owner,
            key=delivery.key,
            nominal_at=delivery.nominal_at,
            at=delivery.started_at,
            happened=happened,
            fire_id=delivery.id,
            attempt=delivery.attempt,
            status=outcome.status,
            duration_ms=outcome.duration_ms,
            detail=detail,
            answer=_clean(outcome.answer, MAX_ANSWER_BYTES),
            worker=self.worker,
            gave_up=happened == "failed" and then != "retry",
            until_at=deliver_after if is_postponed else None,
        )
        delete, reason = delivered and schedule.delete_after, f"{POSTPONED}{detail}" if is_postponed else None
        return Settlement(schedule.id, claim.fire, then, entry, deliver_after, delete_schedule=delete, reason=reason)

    def _delivery(self, claim: Claim, timeout_s: float | None) -> Delivery:
        schedule, fire = claim.schedule, claim.fire
        policy_s = schedule.policy.timeout.total_seconds()
        return Delivery(
            id=fire_id(schedule.owner, schedule.key, claim.nominal_at) if fire is None else fire.id,
            owner=schedule.owner,
            key=schedule.key,
            nominal_at=claim.nominal_at,
            attempt=1 if fire is None else fire.attempt,
            payload=fresh_payload(schedule),
            target=schedule.target,
            timeout_s=policy_s if timeout_s is None else min(policy_s, timeout_s),
            started_at=self._clock.now_ms(),
        )

    async def _deliver(self, delivery: Delivery, on_abandoned: OnAttemptAbandoned | None) -> Outcome:
        target = delivery.target
        if target is None:
            return Outcome(verdict="retry", detail=missing_target(target).detail)
        deliverer = self._deliverers.get(type(target))
        if deliverer is None:
            return missing_target(target)
        try:
            if getattr(deliverer, "bounded", False):
                return _checked(await deliverer.deliver(delivery, target), deliverer)
            work = partial(deliverer.deliver, delivery, target)
            ended = await self._tasks.run(work, delivery.timeout_s, partial(self._abandon, delivery, on_abandoned))
            if ended.answer is None and (ended.late or ended.raised is not None):
                return self._failed(delivery, ended)
            return _checked(ended.answer, deliverer)
        except (KeyboardInterrupt, GeneratorExit):
            raise  # not a handler's: those come back in the result of its task
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # this worker was cancelled, not something that the deliverer waited for
            return self._failed(delivery, TaskResult(None, error))

    def _failed(self, delivery: Delivery, ended: TaskResult[Outcome]) -> Outcome:
        """Return the outcome of a deliverer that raised or was late. A KeyboardInterrupt is meant for the whole program."""
        if isinstance(ended.raised, KeyboardInterrupt):
            raise ended.raised
        if isinstance(ended.raised, RetryLater):
            return _postponed(ended.raised, self._clock.now_ms())
        if ended.late or ended.raised is None:
            return Outcome(verdict="retry", detail=f"no answer within {delivery.timeout_s:g} s")
        log.debug("%s: an attempt failed", delivery.id, exc_info=ended.raised, extra=log_fields(delivery))
        return Outcome(verdict="retry", detail=_described(ended.raised))

    def _abandon(self, delivery: Delivery, on_abandoned: OnAttemptAbandoned | None, attempt: asyncio.Future[Any]) -> None:
        label = label_of(delivery.target)
        self.counts["abandoned"] += 1
        self.abandoned.add(delivery.owner, label, attempt)
        if on_abandoned is not None:
            on_abandoned(delivery, attempt)
        if label not in self._logged_labels and len(self._logged_labels) < MAX_LABELS:
            self._logged_labels.add(label)
            log.warning(
                "%s: the attempt to deliver to %s did not end after its timeout and is abandoned; later ones are only counted: "
                "let CancelledError pass, and give a blocking function a timeout of its own",
                delivery.id,
                label,
                extra=log_fields(delivery),
            )


def _postponed(error: RetryLater, now_ms: int) -> Outcome:
    verdict: Verdict = "retry" if error.counts else "postpone"
    return Outcome(verdict=verdict, detail=error.reason, retry_at=error.instant(now_ms))


def _checked(outcome: object, deliverer: Deliverer[Any]) -> Outcome:
    """Check the outcome of a deliverer that users may have written: the stores trust it from here on."""
    made_by = type(deliverer).__name__
    if not isinstance(outcome, Outcome):
        raise TypeError(f"{made_by} returned a {type(outcome).__name__}: return an Outcome")
    if outcome.verdict not in _VERDICTS or outcome.obstacle not in _OBSTACLES or not isinstance(outcome.status, int):
        raise TypeError(f"{made_by} returned {outcome!r}: give a verdict of {', '.join(_VERDICTS)}, and the status as a number")
    if not isinstance(outcome.detail, _TEXT) or not isinstance(outcome.answer, _TEXT):
        raise TypeError(f"{made_by} returned an outcome whose detail or answer is not a str: decode it, or leave it out")
    asked = outcome.retry_after_ms
    if asked is not None and (isinstance(asked, bool) or not isinstance(asked, int) or asked < 0):
        raise TypeError(f"{made_by} returned retry_after_ms={asked!r}: give whole milliseconds, or leave it out")
    _check_retry_at(outcome, made_by)
    return outcome


def _check_retry_at(outcome: Outcome, made_by: str) -> None:
    if outcome.retry_at is None:
        if outcome.verdict == "postpone":
            raise TypeError(f"{made_by} returned a postponement without retry_at: give it in milliseconds, or raise RetryLater")
        return
    if outcome.verdict not in ("postpone", "retry"):
        raise TypeError(f"{made_by} returned retry_at with the verdict {outcome.verdict!r}: give it with postpone or retry alone")
    if not isinstance(outcome.retry_at, int):
        raise TypeError(f"{made_by} returned retry_at={outcome.retry_at!r}: give whole milliseconds since the epoch")
    to_ms(outcome.retry_at, "retry_at")


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its __str__ failed
        return type(error).__name__


def _clean(text: str | None, max_bytes: int) -> str | None:
    """Return the text as every store can keep it: no NUL, no half characters, not too long."""
    if text is None or (len(text) <= max_bytes and text.isascii() and "\0" not in text):
        return text
    encoded = text[:max_bytes].replace("\0", "\ufffd").encode(errors="replace")
    return encoded[:max_bytes].decode(errors="ignore")
