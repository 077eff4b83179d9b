"""Whether workers have what fires need: handlers, packages, file descriptors; and whether handlers end when they are told to."""

from __future__ import annotations

from collections.abc import Sequence

from tickler.clock import Clock
from tickler.model.target import label_of
from tickler.observe.checks.index_consistency import pages
from tickler.observe.checks.snapshot import StoreSnapshot
from tickler.observe.diagnosis import Finding, OnProgress
from tickler.observe.human_format import some, span
from tickler.records.worker_status import TICK, WorkerReport, workers
from tickler.stores.store import Store

TICKS_MS = 3_600_000  # whoever is ticked from outside is so at least this often


def needed(label: str) -> str:
    """What a worker lacks that cannot deliver to targets with that label."""
    kind, _, handler = label.partition(":")
    if handler:
        return f"the handler {handler!r}"
    return "the kind of target, which it does not know" if kind == "unknown" else f"what delivers to targets of type {kind}"


def no_handler(standing: StoreSnapshot) -> Finding | None:
    """Something that was due is given back again and again, and no worker that is at work could deliver it."""
    able = _able(standing.workers, standing.now_ms)
    nobody = [label for label in _lacking(able) if not any(worker.can_deliver_to(label) for worker in able)]
    if not nobody:
        return None
    since = min(worker.lacks[nobody[0]] for worker in able if nobody[0] in worker.lacks)
    one, many = "thing that fires need is missing", "things that fires need are missing"
    return Finding(
        check="no-handler",
        severity="critical",
        count=len(nobody),
        says=f"{some(len(nobody), one, many)} at every worker: such fires wait, and are dead after 30 days",
        example=f"no worker has {needed(nobody[0])}, last asked for {span(max(standing.now_ms - since, 0))} ago",
        remedy="start a worker that has it (`tickler work --setup module:function` registers handlers), or correct the schedules",
    )


def passed_on(standing: StoreSnapshot) -> Finding | None:
    """Workers on one store that do not have the same handlers: nothing is lost, but some fires come a little later."""
    able = _able(standing.workers, standing.now_ms)
    passed = [label for label in _lacking(able) if any(worker.can_deliver_to(label) for worker in able)]
    if not passed:
        return None
    without = [worker.name for worker in able if passed[0] in worker.lacks]
    return Finding(
        check="passed-on",
        severity="info",
        count=len(passed),
        says=f"some workers lack what others have: fires that they claim are given back, and come {span(1_000)} or so later",
        example=f"{without[0]} lacks {needed(passed[0])}",
        remedy="give all workers of a store the same handlers and packages, or run that one without a runner (`--no-runner`)",
    )


def exhausted(standing: StoreSnapshot) -> Finding | None:
    short = [worker for worker in standing.alive if worker.short_of is not None]
    if not short:
        return None
    return Finding(
        check="exhausted",
        severity="warning",
        count=len(short),
        says=some(
            len(short), "worker has run out of something, and claims less", "workers have run out of something, and claim less"
        ),
        example=f"{short[0].name}: {short[0].short_of}",
        remedy="raise its limits (LimitNOFILE of its unit, or `ulimit -n`), or see what holds so many connections open",
    )


def abandoned(standing: StoreSnapshot) -> Finding | None:
    stuck = [worker for worker in standing.alive if worker.abandoned]
    if not stuck:
        return None
    number = sum(worker.abandoned for worker in stuck)
    return Finding(
        check="abandoned",
        severity="warning",
        count=number,
        says=some(number, "attempt goes on although its time is over", "attempts go on although their time is over"),
        example=f"{stuck[0].name} has {stuck[0].abandoned:,} of them; its log names the handler",
        remedy="let CancelledError pass in that handler, give a plain one timeouts of its own, and start the worker again",
    )


async def unserved(store: Store, clock: Clock, progress: OnProgress) -> Finding | None:
    """Schedules that nobody who is at work could deliver, before they are due."""
    able = _able(await workers(store.records, clock.now_ms()), clock.now_ms())
    if not able or any(worker.delivers_to is None for worker in able):
        return None
    known: dict[str, bool] = {}
    number, done, example = 0, 0, None
    async for page in pages(store, "active"):
        for schedule in page:
            if schedule.target is None:
                continue
            label = label_of(schedule.target)
            if label not in known:
                known[label] = any(worker.can_deliver_to(label) for worker in able)
            if not known[label]:
                number += 1
                example = example or f"{schedule.id} needs {needed(label)}"
        done += len(page)
        progress("looking for schedules that no worker can deliver", done, None)
    if not number:
        return None
    return Finding(
        check="unserved",
        severity="warning",
        count=number,
        says=some(
            number,
            "schedule needs what no worker at work has: its fires will wait",
            "schedules need what no worker at work has: their fires will wait",
        ),
        example=example,
        remedy="start a worker that has it (`tickler work --setup module:function` registers handlers), or correct the schedules",
    )


def _able(heard_of: Sequence[WorkerReport], now_ms: int) -> list[WorkerReport]:
    """Those that are at work, and the last tick, of which the next will be like."""
    return [
        worker for worker in heard_of if worker.is_alive(now_ms) or (worker.name == TICK and now_ms - worker.seen_at < TICKS_MS)
    ]


def _lacking(able: Sequence[WorkerReport]) -> list[str]:
    return sorted({label for worker in able for label in worker.lacks})
