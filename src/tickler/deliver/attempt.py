"""One attempt: a claim is handed to its target, and what came of it becomes a settlement."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, get_args
from urllib.parse import urlsplit

from msgspec.structs import replace

from tickler.clock import Clock
from tickler.deliver import retry
from tickler.deliver.abandonable_task import AbandonableTasks, TaskResult
from tickler.deliver.abandoned import STUCK, Abandoned
from tickler.deliver.listeners import Listeners
from tickler.deliver.missing_targets import lacking
from tickler.deliver.targets.python import Handlers
from tickler.model.delivery import Deliverer, Delivery, Listener, Obstacle, Outcome, Verdict
from tickler.model.fire import GIVEN_BACK, MAX_ANSWER_BYTES, Claim, Entry, Settlement, fire_id
from tickler.model.payload import fresh_payload
from tickler.model.target import HttpTarget, LambdaTarget, PythonTarget, SqsTarget, Target, label_of

MAX_DETAIL_BYTES = 1_000
MAX_LABELS = 500  # that a worker's report names

_VERDICTS = get_args(Verdict)
_OBSTACLES = (None, *get_args(Obstacle))

OnDispatch = Callable[[Delivery, Outcome], Awaitable[None] | None]
OnAttemptAbandoned = Callable[[Delivery, "asyncio.Future[Any]"], None]

log = logging.getLogger("tickler.deliver")


def host_of(target: Target | None) -> str:
    """What a limit on one host counts: where HTTP goes to, a handler, a queue; kinds of others by their name alone."""
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
    """The same for all ways to write it."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{(parts.hostname or '').rstrip('.')}:{port}"


class Attempts:
    """Makes attempts with the deliverers of this worker."""

    def __init__(
        self,
        deliverers: Mapping[type[Target], Deliverer[Any]],
        clock: Clock,
        worker: str,
        kept_ms: int,
        listeners: Sequence[OnDispatch] = (),
        heard_by: Sequence[Listener] = (),
        handlers: Handlers | None = None,
        abandoned: Abandoned | None = None,
    ) -> None:
        self._deliverers = deliverers
        self._handlers = handlers  # what Python targets are delivered to, unless somebody else delivers to them
        self._opened: list[Deliverer[Any]] = []
        self._clock = clock
        self._listeners = listeners
        self.heard = Listeners(heard_by)
        self.counts: Counter[str] = Counter()  # of all that this worker does
        self.abandoned = Abandoned() if abandoned is None else abandoned  # of all workers of this process
        self._own_tasks = AbandonableTasks()
        self._stubborn: set[str] = set()  # labels of targets whose attempts did
        self.worker = worker  # its name
        self.kept_ms = kept_ms  # for how long its history is kept

    async def open(self) -> None:
        """All of them, each once, or none."""
        for deliverer in {id(each): each for each in self._deliverers.values()}.values():
            try:
                await deliverer.open()
            except BaseException:
                await self.close()
                raise
            self._opened.append(deliverer)

    async def close(self) -> None:
        self._own_tasks.close()
        while self._opened:
            deliverer = self._opened.pop()
            try:
                await deliverer.close()
            except Exception:
                log.exception("a %s did not close", type(deliverer).__name__)

    def delivers_to(self) -> list[str]:
        """Labels of all that this worker can deliver to; of more handlers than can be named, that of all Python targets."""
        kinds = sorted(label_of(kind) for kind in self._deliverers)
        if self._handlers is None or len(self._handlers.names) > MAX_LABELS:
            return kinds
        kinds.remove(label_of(PythonTarget))
        return sorted([*kinds, *(label_of(PythonTarget(name)) for name in self._handlers.names)])

    def missing(self, claim: Claim) -> Outcome | None:
        """What is to be said of a claim that this worker lacks the handler or the packages for; None if it has them."""
        target = claim.schedule.target
        if isinstance(target, PythonTarget) and self._handlers is not None:
            has_it = target.handler in self._handlers
        else:
            has_it = type(target) in self._deliverers or (target is None and not claim.schedule.newer)
        return None if has_it else lacking(target)

    def stuck(self, claim: Claim) -> Outcome | None:
        """What is to be said of a claim where too many attempts were abandoned for another to begin; None as a rule."""
        is_stuck = self.abandoned.too_many(claim.schedule.owner, label_of(claim.schedule.target))
        return STUCK if is_stuck else None

    async def make(
        self, claim: Claim, timeout_s: float | None = None, left: OnAttemptAbandoned | None = None
    ) -> tuple[Settlement, Outcome]:
        """Deliver, and say what follows. Raises nothing but a cancellation and a KeyboardInterrupt.

        An attempt that did not begin is none, and nobody is told of it. `left` is called with one that is abandoned.
        """
        delivery = self._delivery(claim, timeout_s)
        outcome = await self._deliver(delivery, left)
        now_ms = self._clock.now_ms()
        if outcome.verdict == "release":
            return self.released(claim, outcome), outcome
        outcome = replace(outcome, duration_ms=max(now_ms - delivery.started_at, 0))
        await self._tell(delivery, outcome)
        settlement = self.settled(claim, delivery, outcome, now_ms)
        self.heard.attempt_ended(claim, settlement, outcome)
        return settlement, outcome

    def cut_off(self, claim: Claim, why: str) -> Settlement:
        """Of an attempt that this worker cannot wait for any more."""
        delivery = self._delivery(claim, None)
        return self.settled(claim, delivery, Outcome(verdict="retry", detail=why), delivery.started_at)

    def released(self, claim: Claim, outcome: Outcome) -> Settlement:
        """Of an attempt that did not begin: given back for a later one, or dead if nobody has begun it for too long."""
        delivery = self._delivery(claim, None)
        now_ms = delivery.started_at
        opened_at = now_ms if claim.fire is None else claim.fire.opened_at
        then, deliver_after = retry.after_release(outcome, opened_at, now_ms)
        detail = _clean(outcome.detail, MAX_DETAIL_BYTES) or "the attempt could not begin"
        if then == "dead" or deliver_after is None:
            days = retry.MAX_RELEASED_MS // 86_400_000
            given_up = replace(outcome, verdict="give_up", detail=f"{detail}, and no other could begin it within {days} days")
            return self.settled(claim, delivery, given_up, now_ms)
        deliver_after = max(deliver_after, claim.due_at)
        return Settlement(claim.schedule.id, claim.fire, "release", None, deliver_after, reason=f"{GIVEN_BACK}{detail}")

    def settled(self, claim: Claim, delivery: Delivery, outcome: Outcome, now_ms: int) -> Settlement:
        schedule, delivered = claim.schedule, outcome.verdict == "delivered"
        if claim.fire is None:
            then, deliver_after = retry.NextStep("done")
        else:
            then, deliver_after = retry.after(outcome, schedule.policy, delivery.attempt, now_ms)
        entry = Entry(
            owner=delivery.owner,
            key=delivery.key,
            nominal_at=delivery.nominal_at,
            at=delivery.started_at,
            happened="delivered" if delivered else "failed",
            fire_id=delivery.id,
            attempt=delivery.attempt,
            status=outcome.status,
            duration_ms=outcome.duration_ms,
            detail=_clean(outcome.detail, MAX_DETAIL_BYTES),
            answer=_clean(outcome.answer, MAX_ANSWER_BYTES),
            worker=self.worker,
            gave_up=not delivered and then != "retry",
        )
        delete = delivered and schedule.delete_after
        return Settlement(schedule.id, claim.fire, then, entry, deliver_after, delete_schedule=delete)

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

    async def _deliver(self, delivery: Delivery, left: OnAttemptAbandoned | None) -> Outcome:
        target = delivery.target
        if target is None:
            return Outcome(verdict="retry", detail=lacking(target).detail)
        deliverer = self._deliverers.get(type(target))
        if deliverer is None:
            return lacking(target)
        try:
            if getattr(deliverer, "bounded", False):
                return _checked(await deliverer.deliver(delivery, target), deliverer)
            work = partial(deliverer.deliver, delivery, target)
            ended = await self._own_tasks.run(work, delivery.timeout_s, partial(self._abandon, delivery, left))
            if ended.answer is None and (ended.late or ended.raised is not None):
                return self._failed(delivery, ended)
            return _checked(ended.answer, deliverer)
        except (KeyboardInterrupt, GeneratorExit):
            raise  # not a handler's: those come back as what its task raised
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # it is this worker that was told to stop, not something that the deliverer waited for
            return self._failed(delivery, TaskResult(None, error))

    def _failed(self, delivery: Delivery, ended: TaskResult[Outcome]) -> Outcome:
        """Whatever a handler raises is its own failure; but who interrupts the program means all of it."""
        if isinstance(ended.raised, KeyboardInterrupt):
            raise ended.raised
        if ended.late or ended.raised is None:
            return Outcome(verdict="retry", detail=f"no answer within {delivery.timeout_s:g} s")
        log.debug("%s: an attempt failed", delivery.id, exc_info=ended.raised, extra=_named(delivery))
        return Outcome(verdict="retry", detail=_said(ended.raised))

    def _abandon(self, delivery: Delivery, left: OnAttemptAbandoned | None, attempt: asyncio.Future[Any]) -> None:
        label = label_of(delivery.target)
        self.counts["abandoned"] += 1
        self.abandoned.add(delivery.owner, label, attempt)
        if left is not None:
            left(delivery, attempt)
        if label not in self._stubborn and len(self._stubborn) < MAX_LABELS:
            self._stubborn.add(label)
            log.warning(
                "%s: what delivers to %s goes on although its time is over, and is not waited for any more; later ones are "
                "counted only: let CancelledError pass, and give a plain function a timeout of its own",
                delivery.id,
                label,
                extra=_named(delivery),
            )

    async def _tell(self, delivery: Delivery, outcome: Outcome) -> None:
        for listener in self._listeners:
            try:
                answer = listener(delivery, outcome)
                if answer is not None and inspect.isawaitable(answer):  # to ask what None is takes a while
                    await answer
            except (Exception, SystemExit, asyncio.CancelledError):  # also when it is cut off: what came of the attempt is known
                log.exception(
                    "%s: what listens to dispatches failed; the delivery is not affected", delivery.id, extra=_named(delivery)
                )


def _checked(outcome: object, deliverer: Deliverer[Any]) -> Outcome:
    """Of a deliverer that anybody may have written; the stores trust it from here on."""
    made_by = type(deliverer).__name__
    if not isinstance(outcome, Outcome):
        raise TypeError(f"{made_by} returned a {type(outcome).__name__}: return an Outcome")
    if outcome.verdict not in _VERDICTS or outcome.obstacle not in _OBSTACLES or not isinstance(outcome.status, int):
        raise TypeError(f"{made_by} returned {outcome!r}: give a verdict of {', '.join(_VERDICTS)}, and the status as a number")
    if not isinstance(outcome.detail, str | None) or not isinstance(outcome.answer, str | None):
        raise TypeError(f"{made_by} returned an outcome whose detail or answer is no text: decode it, or leave it out")
    asked = outcome.retry_after_ms
    if asked is not None and (isinstance(asked, bool) or not isinstance(asked, int) or asked < 0):
        raise TypeError(f"{made_by} returned retry_after_ms={asked!r}: give whole milliseconds, or leave it out")
    return outcome


def _named(delivery: Delivery) -> dict[str, object]:
    """What a line of the log is about."""
    return {"fire_id": delivery.id, "owner": delivery.owner, "key": delivery.key, "attempt": delivery.attempt}


def _said(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its own text fails
        return type(error).__name__


def _clean(text: str | None, most_bytes: int) -> str | None:
    """What every store can keep: no NUL, no half characters, not too long."""
    if text is None or (len(text) <= most_bytes and text.isascii() and "\0" not in text):
        return text
    encoded = text[:most_bytes].replace("\0", "\ufffd").encode(errors="replace")
    return encoded[:most_bytes].decode(errors="ignore")
