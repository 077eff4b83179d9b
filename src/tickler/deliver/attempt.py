"""One attempt: a claim is handed to its target, and what came of it becomes a settlement."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from tickler.clock import Clock
from tickler.deliver import retry
from tickler.delivery import Deliverer, Delivery, Outcome
from tickler.fires import LONGEST_ANSWER_BYTES, Claim, Entry, Settlement, fire_id
from tickler.target import HttpTarget, Target

LONGEST_DETAIL_BYTES = 1_000

OnDispatch = Callable[[Delivery, Outcome], Awaitable[None] | None]

log = logging.getLogger("tickler.deliver")


def host_of(target: Target | None) -> str:
    """What a limit on one host counts: where HTTP goes to; other kinds by their name alone."""
    return _host(target.url) if isinstance(target, HttpTarget) else type(target).__name__


@lru_cache(maxsize=4096)
def _host(url: str) -> str:
    return urlsplit(url).netloc.lower()


class Attempts:
    """Makes attempts with the deliverers of this worker."""

    def __init__(
        self,
        deliverers: Mapping[type[Target], Deliverer[Any]],
        clock: Clock,
        worker: str,
        kept_ms: int,
        listeners: Sequence[OnDispatch] = (),
    ) -> None:
        self._deliverers = deliverers
        self._opened: list[Deliverer[Any]] = []
        self._clock = clock
        self._listeners = listeners
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
        while self._opened:
            deliverer = self._opened.pop()
            try:
                await deliverer.close()
            except Exception:
                log.exception("a %s did not close", type(deliverer).__name__)

    async def make(self, claim: Claim, timeout_s: float | None = None) -> tuple[Settlement, Outcome]:
        """Deliver, and say what follows. Raises nothing but a cancellation."""
        delivery = self._delivery(claim, timeout_s)
        outcome = await self._deliver(delivery)
        now_ms = self._clock.now_ms()
        outcome = replace(outcome, duration_ms=max(now_ms - delivery.started_at, 0))
        await self._tell(delivery, outcome)
        return self.settled(claim, delivery, outcome, now_ms), outcome

    def cut_off(self, claim: Claim, why: str) -> Settlement:
        """Of an attempt that this worker cannot wait for any more."""
        delivery = self._delivery(claim, None)
        return self.settled(claim, delivery, Outcome(verdict="retry", detail=why), delivery.started_at)

    def settled(self, claim: Claim, delivery: Delivery, outcome: Outcome, now_ms: int) -> Settlement:
        schedule, delivered = claim.schedule, outcome.verdict == "delivered"
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
            detail=_clean(outcome.detail, LONGEST_DETAIL_BYTES),
            answer=_clean(outcome.answer, LONGEST_ANSWER_BYTES),
            worker=self.worker,
        )
        if claim.fire is None:
            return Settlement(schedule.id, None, "done", entry, None, False, delivered and schedule.delete_after)
        then, deliver_after = retry.after(outcome, schedule.policy, delivery.attempt, now_ms)
        # One that was changed may have had another policy when the next was made to wait.
        wakes = then != "retry" and (schedule.policy.overlap == "wait" or schedule.version > 1)
        return Settlement(schedule.id, claim.fire, then, entry, deliver_after, wakes, then == "done" and schedule.delete_after)

    def _delivery(self, claim: Claim, timeout_s: float | None) -> Delivery:
        schedule, fire = claim.schedule, claim.fire
        policy_s = schedule.policy.timeout.total_seconds()
        return Delivery(
            id=fire_id(schedule.owner, schedule.key, claim.nominal_at) if fire is None else fire.id,
            owner=schedule.owner,
            key=schedule.key,
            nominal_at=claim.nominal_at,
            attempt=1 if fire is None else fire.attempt,
            payload=schedule.payload,
            target=schedule.target,
            timeout_s=policy_s if timeout_s is None else min(policy_s, timeout_s),
            started_at=self._clock.now_ms(),
        )

    async def _deliver(self, delivery: Delivery) -> Outcome:
        target = delivery.target
        deliverer = self._deliverers.get(type(target)) if target is not None else None
        if target is None or deliverer is None:
            kind = "a kind that this worker cannot read" if target is None else type(target).__name__
            return Outcome(verdict="retry", detail=f"this worker has nothing that delivers to {kind}: install or upgrade it here")
        limit: asyncio.Timeout | None = None
        try:
            if getattr(deliverer, "bounded", False):
                outcome = await deliverer.deliver(delivery, target)
            else:
                async with asyncio.timeout(delivery.timeout_s) as limit:
                    outcome = await deliverer.deliver(delivery, target)
            if not isinstance(outcome, Outcome):
                raise TypeError(f"{type(deliverer).__name__} returned a {type(outcome).__name__}: return an Outcome")
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # it is this worker that was told to stop, not something that the handler waited for
            log.debug("%s: an attempt failed", delivery.id, exc_info=True)
            in_vain = limit is not None and limit.expired()
            detail = f"no answer within {delivery.timeout_s:g} s" if in_vain else _said(error)
            return Outcome(verdict="retry", detail=detail)
        return outcome

    async def _tell(self, delivery: Delivery, outcome: Outcome) -> None:
        for listener in self._listeners:
            try:
                answer = listener(delivery, outcome)
                if inspect.isawaitable(answer):
                    await answer
            except (Exception, asyncio.CancelledError):  # also when it is cut off: what came of the attempt is known
                log.exception("%s: what listens to dispatches failed; the delivery is not affected", delivery.id)


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
