"""Tickler itself: everything on one store."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

import msgspec

from tickler.access.audit_log import AuditLog
from tickler.access.tokens import Tokens
from tickler.clock import Clock, SystemClock, to_ms
from tickler.deliver.abandoned import Abandoned
from tickler.deliver.attempt import Attempts, OnDispatch
from tickler.deliver.claim_loop import Summary
from tickler.deliver.run_options import RunOptions
from tickler.deliver.target_registry import Wrap, own_deliverers, wrapped
from tickler.deliver.target_warnings import target_warnings
from tickler.deliver.targets.python import H, Handlers
from tickler.deliver.worker import Worker, new_name
from tickler.errors import InvalidInput, InvalidSchedule, ScheduleNotFound
from tickler.fires.fires import Fires
from tickler.index.index import Index
from tickler.model.delivery import Deliverer, Listener
from tickler.model.fire import HISTORY_RETENTION_MS, Fire, fire_id
from tickler.model.schedule import Id, State, StoredSchedule, checked_id
from tickler.model.target import HttpTarget, PythonTarget, Target
from tickler.observe.diagnosis import Diagnosis, OnProgress, no_progress
from tickler.observe.doctor import doctor
from tickler.observe.forecast import Forecast
from tickler.observe.forecast_cache import ForecastCache
from tickler.observe.why import Why, why
from tickler.records.kinds import STORE
from tickler.records.records import Records
from tickler.records.worker_status import WorkerReport, workers
from tickler.schedules.contract import Decide, ScheduleStore
from tickler.schedules.schedules import Schedules
from tickler.stores.optional import HasClock
from tickler.stores.store import Capabilities, Store
from tickler.webhooks.encryption import Encryption
from tickler.webhooks.signing_secrets import SigningSecrets
from tickler.when import tzdata_version


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What `connect` was told beyond the store and the clock. `reopen` makes another store on the same data, if it can."""

    create: bool
    environ: Mapping[str, str]
    allow_networks: tuple[str, ...] = ()
    keep_history: timedelta = timedelta(milliseconds=HISTORY_RETENTION_MS)
    reopen: Callable[[], Store] | None = None


class Tickler:
    """Schedules, the index that finds what is due, and the fires that are owed, on one store.

    Made by `connect`; use it with `async with`.
    """

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._kept_ms = settings.keep_history // timedelta(milliseconds=1)
        self._workers: set[Worker] = set()
        self._handlers = Handlers()
        self._deliverers: dict[type[Target], Deliverer[Any]] = {PythonTarget: self._handlers}
        self._listeners: list[OnDispatch] = []
        self._heard_by: list[Listener] = []
        self._wraps: list[Wrap] = []
        self._abandoned = Abandoned()  # by any of its workers, and by ticks before
        self._sealer = Encryption.from_environment(settings.environ)
        self.schedules = Schedules(_Waking(store.schedules, self._wake), clock, sealer=self._sealer, kept_ms=self._kept_ms)
        self.index = Index(store.index)
        self.fires = Fires(store.fires, clock, kept_ms=self._kept_ms, wake=self._wake)
        self.records = Records(store.records, clock)
        self.secrets = SigningSecrets(store.records, self._sealer, clock)
        self.tokens = Tokens(store.records, clock)
        self.audit = AuditLog(store.records, clock, self._kept_ms)
        self.forecasts = ForecastCache(store.index, store.records, clock)

    @property
    def capabilities(self) -> Capabilities:
        """How this store differs from others."""
        return self._store.capabilities

    @property
    def store(self) -> Store:
        """The backend, for those who build on its contracts."""
        return self._store

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def clock_offset_ms(self) -> int:
        """The store's time less this machine's, as far as it is known."""
        return self._clock.offset_ms if isinstance(self._clock, SystemClock) else 0

    @property
    def own_workers(self) -> list[str]:
        """Names of those that run in this process."""
        return [worker.name for worker in self._workers]

    async def workers(self) -> list[WorkerReport]:
        """What each worker last said of itself, within a day."""
        return await workers(self._store.records, self._clock.now_ms())

    def now_ms(self) -> int:
        """The time to claim with: the store's, as far as it is known, so that all workers agree."""
        return self._clock.now_ms()

    async def trigger(self, owner: str, key: str) -> Fire:
        """Fire a schedule now, out of turn, paused or not; a runner delivers it."""
        id = checked_id(owner, key)
        now_ms = self._clock.now_ms()
        while (schedule := await self.schedules.get(owner, key)) is not None:
            if schedule.target is None:
                raise InvalidSchedule("target", f"{id} has none to deliver to: put it with one, or dispatch it yourself")
            fire = Fire(
                id=fire_id(owner, key, now_ms, triggered=True),
                owner=owner,
                key=key,
                nominal_at=now_ms,
                opened_at=now_ms,
                deliver_after=now_ms,
            )
            if await self._store.fires.open(fire):
                self._wake()
                return fire
            now_ms += 1  # it was triggered twice in one millisecond
        raise ScheduleNotFound(owner, key)

    async def why(self, owner: str, key: str, at: int | datetime | None = None, *, names_workers: bool = True) -> Why:
        """Why it fired at an instant of its, or did not; or, without one, how it stands now. Begins with one sentence.

        Without `names_workers` it may be shown to those whose schedule it is: workers are named after their machines.
        """
        instant = None if at is None else to_ms(at, "at")
        store, id = self._store, checked_id(owner, key)
        return await why(
            store.schedules, store.fires, store.records, id, self._clock.now_ms(), instant, names_workers=names_workers
        )

    async def forecast(self) -> Forecast:
        """How many fires are to come, by hour over a week and by minute over an hour, and what stands out among them.

        The one that is kept, which all processes share; worked out now, by a walk over the index, if that is 15 minutes old.
        """
        return await self.forecasts.get()

    async def doctor(self, *, deep: bool = False, repair: bool = False, progress: OnProgress = no_progress) -> Diagnosis:
        """What is wrong with the store, the worst first, each with an example and what mends it.

        Costs a few bounded queries; `deep`, a walk through everything. With `repair`, what can be mended is: safe while workers
        run. `progress` is called with what is being done, how much of it is, and how much there is, if that is known.
        """
        diagnosis = await doctor(self._store, self._clock, deep=deep, repair=repair, progress=progress)
        if repair:
            self._wake()
        return diagnosis

    def warnings(self, target: Target | str | None) -> list[str]:
        """Why a worker with the settings of this process would not deliver to a target, as far as its URL tells.

        For whoever puts a schedule: the settings of the worker that delivers it decide.
        """
        if HttpTarget in self._deliverers:  # a deliverer of the caller's own, who knows
            return []
        return target_warnings(target, self._settings.environ, self._settings.allow_networks)

    def handler(self, name: str) -> Callable[[H], H]:
        """Register a function for `PythonTarget(name)`: `@t.handler("digest")`. It gets the delivery; plain ones run on a thread.

        What it raises is tried again, but for `GiveUp`.
        """

        def register(handler: H) -> H:
            self._handlers.register(name, handler)
            return handler

        return register

    def deliver_with(self, kind: type[Target], deliverer: Deliverer[Any]) -> None:
        """Deliver to a kind of target of your own, or in a way of your own to one of Tickler's."""
        self._deliverers[kind] = deliverer

    def on_dispatch(self, listener: OnDispatch) -> OnDispatch:
        """Call this with every attempt and its outcome, and await it if that is what it wants: `@t.on_dispatch`."""
        self._listeners.append(listener)
        return listener

    def listen(self, listener: Listener) -> None:
        """Tell this of every round and of every attempt that workers of this process make, from now on: for metrics."""
        self._heard_by.append(listener)

    def deliver_through(self, wrap: Wrap) -> None:
        """Put something around every deliverer of workers that start from now on: for traces."""
        self._wraps.append(wrap)

    @property
    def in_flight(self) -> int:
        """How many attempts `run` is making in this process."""
        return sum(worker.runner.in_flight for worker in self._workers)

    async def run(self, options: RunOptions | None = None) -> None:
        """Deliver what is due until `stop`, or until cancelled; then finish what is in flight, and give back the rest.

        Survives the store going away. Any number of workers may run on a store that is shared.
        """
        worker = self._worker(options or RunOptions())
        self._workers.add(worker)
        try:
            await worker.run()
        finally:
            self._workers.discard(worker)

    def stop(self) -> None:
        """Tell `run` to finish; from any thread, and from a signal handler."""
        for worker in list(self._workers):
            worker.stop()

    async def tick(self, budget_ms: int = 50_000, options: RunOptions | None = None) -> Summary:
        """Deliver what is due now, for hosts where an outside cron beats: until nothing is due, or the budget is spent.

        Attempts that are in flight then have `options.drain` to end: 5 s, unless you say otherwise.
        """
        if isinstance(budget_ms, bool) or not isinstance(budget_ms, int) or not 0 < budget_ms <= 86_400_000:
            raise InvalidInput(f"budget_ms: {budget_ms!r} is not a number of milliseconds up to a day: pass 50000 for 50 s")
        return await self._worker(options or RunOptions(drain=5)).tick(budget_ms)

    async def open(self) -> Self:
        """Connect, look at the store's clock, and take back into the index what this worker can read again."""
        await self._store.open(create=self._settings.create)
        try:
            await self._follow_clock()
            await self._store.index.restore()
            await self._record_tzdata()
        except BaseException:
            await self._store.close()
            raise
        return self

    async def close(self) -> None:
        await self._store.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _worker(self, options: RunOptions) -> Worker:
        settings = self._settings
        own = own_deliverers(self._store.records, self._sealer, self._clock, settings.environ, settings.allow_networks)
        deliverers = wrapped({**own, **self._deliverers}, self._wraps)
        handlers = self._handlers if self._deliverers[PythonTarget] is self._handlers else None
        attempts = Attempts(
            deliverers, self._clock, new_name(), self._kept_ms, self._listeners, self._heard_by, handlers, self._abandoned
        )
        shared, reopen = self._store.capabilities.shared, settings.reopen
        if shared and reopen is None:
            options = options.without_keeper()
        return Worker(
            self._store, self.schedules, attempts, self._clock, self._follow_clock, options, reopen=reopen if shared else None
        )

    def _wake(self) -> None:
        for worker in list(self._workers):
            worker.wake()

    async def _follow_clock(self) -> None:
        if isinstance(self._clock, SystemClock) and isinstance(self._store, HasClock):
            asked_at = self._clock.now_ms()
            store_now_ms = await self._store.now_ms()
            if store_now_ms is not None:
                self._clock.follow(store_now_ms, asked_at, self._clock.now_ms(), self.capabilities.clock_ms)

    async def _record_tzdata(self) -> None:
        """The newest time zone database that has been used with this store."""
        recorded = await self.records.get(STORE, "tzdata")
        known = recorded.value.get("version", "") if recorded and isinstance(recorded.value, dict) else ""
        ours = tzdata_version()
        if re.fullmatch(r"\d{4}[a-z]+", ours) and (ours > known or not re.fullmatch(r"\d{4}[a-z]+", known)):
            value = msgspec.json.encode({"version": ours})
            await self._store.records.put(STORE, "tzdata", value, now_ms=self._clock.now_ms())


class _Waking:
    """Keeps schedules as another does, and wakes this process's runners after each change."""

    def __init__(self, store: ScheduleStore, wake: Callable[[], None]) -> None:
        self._store = store
        self._wake = wake

    async def change(self, ids: Sequence[Id], decide: Decide, *, using: object = None) -> None:
        await self._store.change(ids, decide, using=using)
        self._wake()

    async def change_owner(self, owner: str, decide: Decide, *, using: object = None) -> None:
        await self._store.change_owner(owner, decide, using=using)
        self._wake()

    async def get(self, id: Id) -> StoredSchedule | None:
        return await self._store.get(id)

    async def list(
        self, *, owner: str | None, state: State | None, after: Id | None, limit: int, failing: bool = False
    ) -> list[StoredSchedule]:
        return await self._store.list(owner=owner, state=state, after=after, limit=limit, failing=failing)
