"""`Tickler`, the object that `connect` returns: everything on one store."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import msgspec

from tickler.access.audit_log import AuditLog
from tickler.access.tokens import Tokens
from tickler.clock import Clock, SystemClock, to_ms
from tickler.database.background import innermost, running_in_background
from tickler.database.progress import OnProgress, no_progress
from tickler.database.unit_of_work import Database, UnitOfWork, after_commit
from tickler.deliver.abandoned import Abandoned
from tickler.deliver.attempt import Attempts
from tickler.deliver.listeners import Listeners, OnDispatch
from tickler.deliver.run_options import RunOptions, WorkerConfig
from tickler.deliver.sequential_worker import SequentialWorker
from tickler.deliver.summary import Summary
from tickler.deliver.target_registry import TargetRegistry, Wrap, own_deliverers, wrapped
from tickler.deliver.target_warnings import target_warnings
from tickler.deliver.targets.python import H, Handlers
from tickler.deliver.worker import Worker, new_name
from tickler.distribution import install_command
from tickler.errors import InvalidInput, InvalidSchedule, ScheduleNotFound
from tickler.fires.fires import Fires
from tickler.index.index import Index
from tickler.model.delivery import Deliverer, Listener
from tickler.model.duration import Duration, to_duration
from tickler.model.fire import HISTORY_RETENTION_MS, Fire, fire_id
from tickler.model.policy import DEFAULT_POLICY, Policy
from tickler.model.schedule import checked_id
from tickler.model.target import HttpTarget, PythonTarget, Target
from tickler.observe.diagnosis import Diagnosis
from tickler.observe.doctor import doctor
from tickler.observe.forecast import Forecast
from tickler.observe.forecast_cache import ForecastCache
from tickler.observe.why import Why, why
from tickler.records.kinds import STORE
from tickler.records.records import Records
from tickler.records.worker_status import WorkerReport, workers
from tickler.schedules.schedules import Schedules
from tickler.sends.sends import SendOptions, Sends, Sent
from tickler.stores.optional import HasClock
from tickler.stores.store import Capabilities, Store
from tickler.webhooks.encryption import Encryption
from tickler.webhooks.key_ring import KeyRing
from tickler.webhooks.signing_secrets import SigningSecrets
from tickler.webhooks.text_encryption import TextEncryption
from tickler.when import tzdata_version

if TYPE_CHECKING:
    import aiohttp

MAX_HTTP_TIMEOUT = timedelta(days=1)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `connect` other than the store and the clock. `reopen` opens the same data a second time, if possible."""

    create: bool
    environ: Mapping[str, str]
    allow_networks: tuple[str, ...] = ()
    keep_history: timedelta = timedelta(milliseconds=HISTORY_RETENTION_MS)
    reopen: Callable[[], Store] | None = None


class Tickler:
    """Schedules, the index of due ones, and their fires, on one store. Made by `connect`; use it with `async with`."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._retention_ms = settings.keep_history // timedelta(milliseconds=1)
        self._workers: set[Worker] = set()
        self._handlers = Handlers()
        self._deliverers: dict[type[Target], Deliverer[Any]] = {PythonTarget: self._handlers}
        self._dispatch_callbacks: list[OnDispatch] = []
        self._listeners: list[Listener] = []
        self._wraps: list[Wrap] = []
        self._abandoned = Abandoned()  # attempts abandoned by any worker or earlier tick
        keys = KeyRing.from_environment(settings.environ)
        self._encryption = Encryption(keys)
        self.encryption = TextEncryption(keys)
        self.schedules = Schedules(
            store.schedules, clock, encryption=self._encryption, retention_ms=self._retention_ms, wake=self._wake
        )
        self._sends = Sends(store.sends, clock, encryption=self._encryption, retention_ms=self._retention_ms, wake=self._wake)
        self.index = Index(store.index)
        self.fires = Fires(store.fires, clock, retention_ms=self._retention_ms, wake=self._wake)
        self.records = Records(store.records, clock)
        self.secrets = SigningSecrets(store.records, self._encryption, clock)
        self.tokens = Tokens(store.records, clock)
        self.audit = AuditLog(store.records, clock, self._retention_ms)
        self.forecasts = ForecastCache(store.index, store.records, clock)

    @property
    def capabilities(self) -> Capabilities:
        """The optional features of this store."""
        return self._store.capabilities

    @property
    def store(self) -> Store:
        """The backend, for code that builds on its contracts."""
        return self._store

    @property
    def database(self) -> Database:
        """The connection, pool or client of the store, which `Table.connect` shares."""
        return self._store.database

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def clock_offset_ms(self) -> int:
        """The store's time minus this machine's, as far as it is known."""
        return self._clock.offset_ms if isinstance(self._clock, SystemClock) else 0

    @property
    def own_workers(self) -> list[str]:
        """The names of the workers that run in this process."""
        return [worker.name for worker in self._workers]

    async def workers(self) -> list[WorkerReport]:
        """Return the latest report of each worker that reported within a day."""
        return await workers(self._store.records, self._clock.now_ms())

    def now_ms(self) -> int:
        """Return the time to claim with: the store's, as far as it is known, so that all workers agree."""
        return self._clock.now_ms()

    async def trigger(self, owner: str, key: str, *, using: object = None) -> Fire:
        """Fire a schedule now, in addition to its planned fires, even if it is paused. A worker delivers it.

        `using` is a connection of yours with an open transaction, or a transaction of a table. The fire opens when it commits.
        """
        id = checked_id(owner, key)
        now_ms = self._clock.now_ms()
        if isinstance(using, UnitOfWork):
            using.check_not_joined([id])
        while (schedule := await self.schedules.get(owner, key, using=using)) is not None:
            if schedule.target is None:
                raise InvalidSchedule("target", f"{id} has no target: put it with one, or dispatch it yourself")
            fire = Fire(
                id=fire_id(owner, key, now_ms, triggered=True),
                owner=owner,
                key=key,
                nominal_at=now_ms,
                opened_at=now_ms,
                deliver_after=now_ms,
            )
            if await self._store.fires.open(fire, using=using):
                after_commit(using, self._wake)
                return fire
            now_ms += 1  # another trigger took this millisecond
        raise ScheduleNotFound(owner, key)

    async def send(
        self,
        owner: str,
        key: str,
        target: Target | str,
        payload: object = None,
        *,
        at: int | datetime | None = None,
        policy: Policy = DEFAULT_POLICY,
        using: object = None,
    ) -> Sent:
        """Deliver once to a target, now or at an instant: signed, retried and in the history, as the fire of a one-shot schedule.

        The owner and key name the send as long as the history is kept: a second call with the same content sends nothing and
        returns the first fire. `SendConflict` if it has other content, or if they name a schedule. `using` is a connection of
        yours with an open transaction, or a transaction of a table: it is sent if that commits.
        """
        return await self._sends.send(checked_id(owner, key), target, payload, SendOptions(at, policy), using=using)

    async def why(self, owner: str, key: str, at: int | datetime | None = None, *, names_workers: bool = True) -> Why:
        """Explain why a schedule fired at an instant, or did not; without `at`, describe its present state.

        Set `names_workers` to False before showing the result to the owner: workers are named after their machines.
        """
        instant = None if at is None else to_ms(at, "at")
        return await why(self._store, checked_id(owner, key), self._clock.now_ms(), instant, names_workers=names_workers)

    async def forecast(self) -> Forecast:
        """Return the number of coming fires, by hour over a week and by minute over an hour, and their peaks.

        All processes share one stored forecast. If it is older than 15 minutes, a walk over the index computes a new one.
        """
        return await self.forecasts.get()

    async def doctor(self, *, deep: bool = False, repair: bool = False, on_progress: OnProgress = no_progress) -> Diagnosis:
        """Return the problems of the store, the worst first, each with an example and its repair.

        This takes a few bounded queries; with `deep`, a walk through everything. `repair` repairs what it can; that is safe while
        workers run. `on_progress` is called with the name of the step, how much of it is done, and the total, if that is known.
        """
        diagnosis = await doctor(self._store, self._clock, deep=deep, repair=repair, on_progress=on_progress)
        if repair:
            self._wake()
        return diagnosis

    def warnings(self, target: Target | str | None) -> list[str]:
        """Return why a worker with the settings of this process would refuse the target, as far as its URL shows.

        These are only warnings, since the settings of the worker that delivers decide.
        """
        if HttpTarget in self._deliverers:  # the caller's own deliverer decides
            return []
        return target_warnings(target, self._settings.environ, self._settings.allow_networks)

    def http_session(self, *, timeout: Duration = 30, max_bytes: int = 1_000_000) -> aiohttp.ClientSession:
        """Return an aiohttp session for URLs that users gave you: `async with t.http_session() as session: …`.

        It connects only where deliveries may, also after a redirect; otherwise `AddressRefused`. `timeout` limits each request in
        all. A body longer than `max_bytes`, as sent or decompressed, is an `aiohttp.ClientPayloadError`. No proxies, no cookies.
        """
        limit = to_duration("timeout", timeout, MAX_HTTP_TIMEOUT)
        if not limit:
            raise InvalidInput("timeout: 0 allows no request: pass some seconds")
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
            raise InvalidInput(f"max_bytes: {max_bytes!r} is not a number of bytes: pass 1_000_000 for a megabyte")
        try:
            guards, sessions = import_module("tickler.deliver.address_guard"), import_module("tickler.deliver.http_session")
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            raise InvalidInput(f"http_session needs the package {package}: {install_command('http')}") from None
        guard = guards.AddressGuard.from_environment(self._settings.environ, self._settings.allow_networks)
        session: aiohttp.ClientSession = sessions.open_session(guard, timeout_s=limit.total_seconds(), max_bytes=max_bytes)
        return session

    def handler(self, name: str) -> Callable[[H], H]:
        """Register a function for `PythonTarget(name)`: `@t.handler("digest")`. It is called with the delivery.

        Functions that are not async run in a thread. An exception leads to a retry, unless it is `GiveUp` or `RetryLater`.
        """

        def register(handler: H) -> H:
            self._handlers.register(name, handler)
            return handler

        return register

    def deliver_with(self, kind: type[Target], deliverer: Deliverer[Any]) -> None:
        """Deliver to a kind of target with your own deliverer, also in place of one of Tickler's."""
        self._deliverers[kind] = deliverer

    def on_dispatch(self, callback: OnDispatch) -> OnDispatch:
        """Call `callback` with every attempt and its outcome, and await its result if it is awaitable: `@t.on_dispatch`."""
        self._dispatch_callbacks.append(callback)
        return callback

    def listen(self, listener: Listener) -> None:
        """Call `listener` after every round and every attempt of this process's workers, from now on. Metrics use this."""
        self._listeners.append(listener)

    def deliver_through(self, wrap: Wrap) -> None:
        """Wrap the deliverers of all workers that start from now on. Tracing uses this."""
        self._wraps.append(wrap)

    @property
    def in_flight(self) -> int:
        """How many attempts `run` is making in this process."""
        return sum(worker.in_flight for worker in self._workers)

    async def run(self, options: RunOptions | None = None) -> None:
        """Deliver due fires until `stop` or cancellation; then finish the attempts in flight and release the other fires.

        It keeps running while the store is unavailable. Any number of workers may run on a shared store.
        """
        await self._run(self._worker(options or RunOptions()))

    @asynccontextmanager
    async def running(self, options: RunOptions | None = None) -> AsyncIterator[Self]:
        """Deliver due fires while the block runs: the worker of a web application in its own process.

        At its end, attempts in flight have `options.drain` to finish, and the other fires are released. A worker that fails
        cancels the block, and its error is raised there, as by an `asyncio.TaskGroup`; without `await`, at the end of the block.
        """
        worker = self._worker(options or RunOptions())
        self._workers.add(worker)
        async with running_in_background(self._run(worker), worker.stop, f"worker {worker.name}"):
            yield self

    def stop(self) -> None:
        """Make `run` finish, and the workers of `running`. May be called from any thread, and from a signal handler."""
        for worker in list(self._workers):
            worker.stop()

    async def tick(self, budget_ms: int = 50_000, options: RunOptions | None = None) -> Summary:
        """Deliver due fires until nothing is due or the budget is spent, for hosts where an outside cron job calls this.

        After that, attempts in flight have `options.drain` to finish, by default 5 s.
        """
        if isinstance(budget_ms, bool) or not isinstance(budget_ms, int) or not 0 < budget_ms <= 86_400_000:
            raise InvalidInput(f"budget_ms: {budget_ms!r} is not a whole number of milliseconds up to a day: pass 50000 for 50 s")
        return await self._worker(options or RunOptions(drain=5)).tick(budget_ms)

    async def open(self) -> Self:
        """Connect, follow the store's clock, and restore rows to the index that this worker can read again."""
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

    async def _run(self, worker: Worker) -> None:
        self._workers.add(worker)
        crash: BaseException | None = None
        try:
            await worker.run()
        except BaseExceptionGroup as group:
            crash = innermost(group)
        finally:
            self._workers.discard(worker)
        if crash is not None:
            raise crash

    def sequential_worker(self, rng: Callable[[], float]) -> SequentialWorker:
        """Return a worker that delivers one fire after the other, for `tickler.testing.play`. `rng` gives its jitter."""
        config = WorkerConfig("sequential", RunOptions(in_flight=1), self._retention_ms)
        return SequentialWorker(self._store, self.schedules, self._attempts(config.name, rng), self._clock, config)

    def _attempts(self, worker: str, rng: Callable[[], float] = random.random) -> Attempts:
        settings = self._settings
        own = own_deliverers(self._store.records, self._encryption, self._clock, settings.environ, settings.allow_networks)
        deliverers = wrapped({**own, **self._deliverers}, self._wraps)
        handlers = self._handlers if self._deliverers[PythonTarget] is self._handlers else None
        listeners = Listeners(self._dispatch_callbacks, self._listeners)
        return Attempts(TargetRegistry(deliverers, handlers), self._clock, worker, listeners, self._abandoned, rng)

    def _worker(self, options: RunOptions) -> Worker:
        name = new_name()
        attempts = self._attempts(name)
        shared, reopen = self._store.capabilities.shared, self._settings.reopen
        if shared and reopen is None:
            options = options.without_keeper()
        config = WorkerConfig(name, options, self._retention_ms, reopen if shared else None)
        return Worker(self._store, self.schedules, attempts, self._clock, self._follow_clock, config)

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
        """Record our version of the time zone database, if it is the newest that this store has been used with."""
        recorded = await self.records.get(STORE, "tzdata")
        known = recorded.value.get("version", "") if recorded and isinstance(recorded.value, dict) else ""
        ours = tzdata_version()
        if re.fullmatch(r"\d{4}[a-z]+", ours) and (ours > known or not re.fullmatch(r"\d{4}[a-z]+", known)):
            value = msgspec.json.encode({"version": ours})
            await self._store.records.put(STORE, "tzdata", value, now_ms=self._clock.now_ms())
