"""Checks that workers have what fires need (handlers, packages, file descriptors), and that handlers stop at their timeout."""

from __future__ import annotations

from collections.abc import Sequence

from tickler.clock import Clock
from tickler.database.progress import OnProgress
from tickler.model.target import label_of
from tickler.observe.checks.index_consistency import pages
from tickler.observe.checks.snapshot import StoreSnapshot
from tickler.observe.diagnosis import Finding
from tickler.observe.human_format import some, span
from tickler.records.worker_status import TICK, WorkerReport, workers
from tickler.stores.store import Store

TICK_INTERVAL_MS = 3_600_000


def requirement(label: str) -> str:
    """Describe what a worker needs to deliver to targets with this label."""
    kind, _, handler = label.partition(":")
    if handler:
        return f"the handler {handler!r}"
    return "this kind of target" if kind == "unknown" else f"support for targets of type {kind}"


def no_handler(snapshot: StoreSnapshot) -> Finding | None:
    """Find handlers that due fires need and no running worker has: these fires are released again and again."""
    able = _able(snapshot.workers, snapshot.now_ms)
    missing = [label for label in _lacking(able) if not any(worker.can_deliver_to(label) for worker in able)]
    if not missing:
        return None
    since = min(worker.lacks[missing[0]] for worker in able if missing[0] in worker.lacks)
    one, many = "handler or package is missing", "handlers or packages are missing"
    return Finding(
        check="no-handler",
        severity="critical",
        count=len(missing),
        says=f"{some(len(missing), one, many)} on every worker: their fires wait, and are dead after 30 days",
        example=f"no worker has {requirement(missing[0])}, last needed {span(max(snapshot.now_ms - since, 0))} ago",
        remedy="start a worker that has it (`tickler work --setup module:function` registers handlers), or correct the schedules",
    )


def passed_on(snapshot: StoreSnapshot) -> Finding | None:
    """Find handlers that only some workers have: nothing is lost, but some fires are delivered a little later."""
    able = _able(snapshot.workers, snapshot.now_ms)
    passed = [label for label in _lacking(able) if any(worker.can_deliver_to(label) for worker in able)]
    if not passed:
        return None
    without = [worker.name for worker in able if passed[0] in worker.lacks]
    return Finding(
        check="passed-on",
        severity="info",
        count=len(passed),
        says=f"some workers lack handlers that others have: they release such fires, which costs about {span(1_000)}",
        example=f"{without[0]} lacks {requirement(passed[0])}",
        remedy="give all workers the same handlers and packages, or run that server with `--no-worker`",
    )


def exhausted(snapshot: StoreSnapshot) -> Finding | None:
    short = [worker for worker in snapshot.alive if worker.short_of is not None]
    if not short:
        return None
    return Finding(
        check="exhausted",
        severity="warning",
        count=len(short),
        says=some(len(short), "worker is short of resources, and claims less", "workers are short of resources, and claim less"),
        example=f"{short[0].name}: {short[0].short_of}",
        remedy="raise its limits (LimitNOFILE of its unit, or `ulimit -n`), or find what holds so many connections open",
    )


def abandoned(snapshot: StoreSnapshot) -> Finding | None:
    stuck = [worker for worker in snapshot.alive if worker.abandoned]
    if not stuck:
        return None
    number = sum(worker.abandoned for worker in stuck)
    return Finding(
        check="abandoned",
        severity="warning",
        count=number,
        says=some(number, "attempt runs past its timeout", "attempts run past their timeout"),
        example=f"{stuck[0].name} has {stuck[0].abandoned:,}; its log names the handler",
        remedy="do not catch CancelledError in that handler, give a blocking one timeouts of its own, and restart the worker",
    )


async def unserved(store: Store, clock: Clock, on_progress: OnProgress) -> Finding | None:
    """Find schedules that no running worker could deliver, before they are due."""
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
                example = example or f"{schedule.id} needs {requirement(label)}"
        done += len(page)
        on_progress("looking for schedules that no worker can deliver", done, None)
    if not number:
        return None
    one = "schedule needs a handler or package that no running worker has: its fires will wait"
    many = "schedules need handlers or packages that no running worker has: their fires will wait"
    return Finding(
        check="unserved",
        severity="warning",
        count=number,
        says=some(number, one, many),
        example=example,
        remedy="start a worker that has it (`tickler work --setup module:function` registers handlers), or correct the schedules",
    )


def _able(reports: Sequence[WorkerReport], now_ms: int) -> list[WorkerReport]:
    """Return running workers, and the last tick: the next one will have the same handlers."""
    ticked_after_ms = now_ms - TICK_INTERVAL_MS
    return [worker for worker in reports if worker.is_alive(now_ms) or (worker.name == TICK and worker.seen_at > ticked_after_ms)]


def _lacking(able: Sequence[WorkerReport]) -> list[str]:
    return sorted({label for worker in able for label in worker.lacks})
