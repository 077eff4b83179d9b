"""One process of a consumer at work: holds shards, reads them, has their changes delivered, and saves how far that has come.

One coroutine saves everything, so that no save overtakes another. Deliveries are tasks, one for each shard, so that a slow or
failing change holds up the later ones of its shard at most.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping

from msgspec.structs import replace

from tickler.errors import StoreUnavailable
from tickler.table.engines.change_log import ShardRead
from tickler.table.streams.context import StreamContext
from tickler.table.streams.delivery import Delivery, Stopped
from tickler.table.streams.leases import ShardState, plan_leases, readable
from tickler.table.streams.parked_retry import RENEWALS_PER_LEASE, retry_one
from tickler.table.streams.parking import Parking
from tickler.table.streams.progress import Loaded, Progress
from tickler.table.streams.pruner import Pruner
from tickler.table.streams.shard_lease import ShardLease

READ_AT_A_TIME = 100
SAVED_EVERY_S = 0.2

log = logging.getLogger("tickler.table")


class Session:
    """`on_lost` is called before the changes behind a gap are delivered."""

    def __init__(
        self, context: StreamContext, delivery: Delivery, parking: Parking, on_lost: Callable[[], Awaitable[None]]
    ) -> None:
        self.wake = asyncio.Event()  # something has happened: a delivery has ended, or an item was written
        self._context = context
        self._delivery = delivery
        self._parking = parking
        self._on_lost = on_lost
        self._me = secrets.token_hex(8)
        self._name = context.options.name
        self._progress = Progress(context.metadata, self._name)
        self._pruner = Pruner(context)
        self._leases: dict[str, ShardLease] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._finishing: set[str] = set()  # shards that were let go while a handler ran: not to be taken again before it ends
        self._retrying: asyncio.Task[None] | None = None
        self._renew_at = 0.0
        self._save_at = 0.0
        self._is_save_uncertain = False  # a save was interrupted, and may have happened
        self._has_moved = False
        self._failure: StoreUnavailable | None = None
        self._crash: Exception | None = None

    @property
    def is_delivering(self) -> bool:
        return bool(self._tasks)

    @property
    def has_moved(self) -> bool:
        """Whether the last step got on in a shard, though it may have found only what is not for this consumer."""
        return self._has_moved

    async def step(self) -> bool:
        """Renew and save what is due, read, and begin to deliver. Returns whether anything was read."""
        self.wake.clear()
        self._raise_failure()
        if self._now() >= self._renew_at or self._is_save_uncertain:
            await self._renew()
        await self._save()
        await self._pruner.prune_if_due(self._now())
        free = {shard: lease.position for shard, lease in self._leases.items() if lease.is_free}
        reads = await self._context.changes.read(free, limit=READ_AT_A_TIME) if free else []
        self._has_moved = any(read.position != free[read.shard] for read in reads)
        for read in reads:
            self._begin(read)
        return any(read.records or read.ended for read in reads)

    def raise_crash(self) -> None:
        """Raise what ended a delivery and is no failure of a handler."""
        if self._crash is not None:
            raise self._crash

    async def wait(self, pause_s: float) -> None:
        """Wait until something happens, but not longer than until the next thing is due."""
        is_unsaved = any(lease.is_unsaved for lease in self._leases.values())
        due_at = min(self._renew_at, self._save_at) if is_unsaved else self._renew_at
        try:
            async with asyncio.timeout(max(0.0, min(pause_s, due_at - self._now()))):
                await self.wake.wait()
        except TimeoutError:
            return

    async def close(self) -> None:
        """Wait for handlers that have begun, save, and give everything up."""
        self._delivery.stop()
        await asyncio.gather(*self._tasks)
        if self._failure is not None:
            log.warning("consumer %s: %s", self._name, self._failure)
        try:
            await self._give_up_everything()
        except StoreUnavailable as error:
            log.warning("consumer %s: others have its shards once its leases expire, because %s", self._name, error)

    async def _give_up_everything(self) -> None:
        if self._is_save_uncertain:
            self._let_go_of_taken((await self._progress.load()).states)
        for lease in self._leases.values():
            lease.is_leaving = True
        await self._save_leases(dict(self._leases))
        await self._progress.leave([self._me])

    def _begin(self, read: ShardRead) -> None:
        lease = self._leases[read.shard]
        lease.begin(read, self._context.clock.now_ms())
        if read.records or read.lost:
            lease.task = self._started(self._deliver(lease, read))
        else:
            lease.end(read)

    async def _deliver(self, lease: ShardLease, read: ShardRead) -> None:
        is_loss_told = not read.lost
        try:
            if read.lost:
                log.error("consumer %s: changes of shard %s were deleted before it had read them", self._name, read.shard)
                await self._on_lost()
                is_loss_told = True
            await self._delivery.deliver(read.records, lease.done, lambda: lease.is_valid(self._now()))
        except Stopped:
            pass
        except StoreUnavailable as error:
            self._failure = error
        except Exception as error:
            self._crash = error
        finally:
            if is_loss_told:
                lease.end(read)
            lease.task = None

    def _raise_failure(self) -> None:
        """Raise what has ended a delivery. A failure of the store is raised once, and the delivery is tried again."""
        self.raise_crash()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def _save(self) -> None:
        """Save the shards in which something was delivered: once their deliveries have ended, or from time to time."""
        is_due = self._now() >= self._save_at
        unsaved = {shard: lease for shard, lease in self._leases.items() if lease.is_unsaved and (is_due or lease.task is None)}
        if unsaved:
            await self._save_leases(unsaved)
            self._save_at = self._now() + SAVED_EVERY_S

    async def _save_leases(self, leases: dict[str, ShardLease]) -> None:
        """Save shards with new leases. One that another process has taken meanwhile is let go."""
        now, now_ms = self._now(), self._context.clock.now_ms()
        states = {shard: lease.next_state(now_ms + self._context.options.lease_ms, now_ms) for shard, lease in leases.items()}
        for lease in leases.values():
            lease.is_unsaved = False  # what is delivered from now on is not in these states
        self._is_save_uncertain = True
        saved = await self._progress.save(states)
        self._is_save_uncertain = False
        await self._check_unsaved({shard: lease for shard, lease in leases.items() if shard not in saved})
        for shard in saved:
            lease = leases[shard]
            lease.state, lease.valid_until = states[shard], now + self._context.options.lease.total_seconds()
            if lease.state.holder is None:
                del self._leases[shard]
                self._renew_at = 0.0 if lease.state.ended else self._renew_at  # its children can be read now

    async def _check_unsaved(self, leases: dict[str, ShardLease]) -> None:
        """Let go what another process has. What this one holds was saved before, and the answer was lost: save it again."""
        stored = (await self._progress.load()).states if leases else {}
        for shard, lease in leases.items():
            state = stored.get(shard, ShardState())
            if state.holder == self._me:
                lease.state, lease.is_unsaved = state, True
            else:
                log.warning("consumer %s: another process took shard %s", self._name, shard)
                self._let_go(shard)

    async def _renew(self) -> None:
        """Renew what this process holds, take or give up shards so that each process has its share, and tidy up."""
        options, now_ms, started_at = self._context.options, self._context.clock.now_ms(), self._now()
        await self._progress.join(self._me, now_ms + options.lease_ms)
        loaded = await self._loaded()
        self._let_go_of_taken(loaded.states)
        members = [member for member, until_ms in loaded.members.items() if until_ms > now_ms]
        listed = await self._context.changes.shards()
        plan = plan_leases(readable(listed, loaded.states), loaded.states, self._me, members, now_ms)
        for shard in plan.give_up:
            self._leases[shard].is_leaving = True
        for shard in plan.take:
            if shard not in self._leases and shard not in self._finishing:
                state = replace(loaded.states.get(shard, ShardState()), holder=self._me)
                self._leases[shard] = ShardLease(state, valid_until=0.0)
        await self._save_leases(dict(self._leases))
        await self._parking.refresh()  # what the last holders of the shards have parked, before these are read
        self._renew_at = started_at + options.lease.total_seconds() / RENEWALS_PER_LEASE
        await self._tidy(loaded, {shard.id for shard in listed}, now_ms)
        await self._retry_parked()

    async def _loaded(self) -> Loaded:
        """Return the states of shards. Those of a new consumer begin where its options say."""
        loaded = await self._progress.load()
        if loaded.states or self._context.options.start == "oldest":
            return loaded
        ends = await self._context.changes.end()
        await self._progress.save({shard: ShardState(position) for shard, position in ends.items()})
        return await self._progress.load()

    async def _tidy(self, loaded: Loaded, listed: set[str], now_ms: int) -> None:
        """Delete the states of shards that have ended and are gone, and processes that have ended without leaving."""
        gone = [shard for shard, state in loaded.states.items() if state.ended and shard not in listed]
        dead = [member for member, until_ms in loaded.members.items() if until_ms < now_ms - self._context.options.lease_ms]
        if gone:
            await self._progress.forget(gone)
        if dead:
            await self._progress.leave(dead)

    def _let_go_of_taken(self, states: Mapping[str, ShardState]) -> None:
        for shard in [shard for shard in self._leases if states.get(shard, ShardState()).holder != self._me]:
            self._let_go(shard)

    def _let_go(self, shard: str) -> None:
        """Forget a shard that another process has. No handler is started for it any more."""
        lease = self._leases.pop(shard)
        lease.valid_until = 0.0
        if lease.task is not None:
            self._finishing.add(shard)
            lease.task.add_done_callback(lambda _: self._finishing.discard(shard))

    async def _retry_parked(self) -> None:
        """Try again what was asked for."""
        if self._retrying is None and (due := await self._parking.due()):
            self._retrying = self._started(self._retry(due))

    async def _retry(self, keys: list[str]) -> None:
        """Deliver parked changes again, as many of each item as succeed in a row."""
        tried: set[str] = set()
        try:
            while keys:
                for key in keys:
                    await retry_one(self._context, self._delivery, self._parking, key)
                tried |= set(keys)
                keys = [key for key in await self._parking.due() if key not in tried]
        except Stopped:
            pass
        except StoreUnavailable as error:
            log.warning("consumer %s: parked changes could not be tried again: %s", self._name, error)
        except Exception as error:
            self._crash = error
        finally:
            self._retrying = None

    def _started(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.wake.set()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
