"""Carries out decisions about change sets, in all their stores: first all are staged, and only then are they sealed.

It is safe to stop it anywhere, to repeat it, and to run it twice at once: each step in a store finds out how far that store is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from pricebook.change_sets import states
from pricebook.change_sets.finishing import Finishing
from pricebook.change_sets.rollback_steps import RollbackSteps
from pricebook.change_sets.store_pages import STORES_AT_A_TIME, store_pages
from pricebook.change_sets.store_steps import Overtaken, StoreSteps, cause_of_decision
from pricebook.change_sets.writer import ChangeSetWriter, Write
from pricebook.editions.head_writes import Cause
from pricebook.editions.staging import batches
from pricebook.errors import HasChanged, InvalidField, NotAllowed, NotFound
from pricebook.model import ChangeProgress, ChangeSet, ChangeStore, ChangeStoreState
from pricebook.points import AtPoint
from tickler import RetryLater
from tickler.table import MISSING, OpenTable, evolve

STORES_AT_ONCE = 8
SLICE_S = 60  # of work, before others get their turn

Step = Callable[[ChangeSet, ChangeStore], Awaitable[ChangeStore]]

NOT_STAGED: tuple[ChangeStoreState, ...] = ("pending", "open")


class Steps(NamedTuple):
    """What is done in stores: by ordinary change sets, by rollbacks, and to take either back."""

    ordinary: StoreSteps
    rollback: RollbackSteps
    take_back: Step


class Carrier:
    def __init__(self, db: OpenTable, writer: ChangeSetWriter, finishing: Finishing, steps: Steps, at_point: AtPoint) -> None:
        self._db = db
        self._writer = writer
        self._finishing = finishing
        self._steps = steps
        self._at_point = at_point

    async def carry_on(self, id: str) -> str:
        """Do what was decided about a change set, and return what was done, for the history of the fire."""
        try:
            found = await self._writer.read(id)
        except NotFound:
            return "nothing to do: there is no such change set"
        try:
            match found.state:
                case "approving":
                    return await self._approve(found)
                case "withdrawing":
                    return await self._withdraw(found)
        except RetryLater:
            await self._writer.push_due(found, self._writer.now() + states.PATIENCE, begin=False)  # somebody works on it
            raise
        except (Overtaken, HasChanged):
            return "nothing to do: somebody has decided otherwise meanwhile"
        return f"nothing to do: it is {found.state}"

    async def _approve(self, found: ChangeSet) -> str:
        steps = self._steps.ordinary if found.rolls_back is MISSING else self._steps.rollback
        walk = _Walk(self._db, found)
        try:
            await walk.each(NOT_STAGED, steps.stage)
            await self._at_point("change_set.all_staged")
            await walk.each(("staged",), steps.seal)
        except (NotAllowed, NotFound, InvalidField) as error:
            return await self._refuse(found, str(error))
        await self._at_point("change_set.all_sealed")
        if found.rolls_back is not MISSING:
            await self._supersede(found, found.rolls_back)
        first_at, last_at = walk.bounds(self._writer.now())

        def decide(found: ChangeSet) -> ChangeSet:
            return states.approved(found, first_at, last_at)

        await self._writer.write(found.id, Write("approved", decide, cause_of_decision(found), found.rev))
        await self._at_point("change_set.approved")
        await self._finishing.finish(found.id)
        return f"approved in {walk.stores} stores"

    async def _refuse(self, found: ChangeSet, why: str) -> str:
        def decide(found: ChangeSet) -> ChangeSet:
            return states.refused(found, why, self._writer.now())

        found = await self._writer.write(found.id, Write("refuse", decide, Cause(reason=why[:500]), found.rev))
        await self._at_point("change_set.refused")
        await self._withdraw(found)
        return f"refused: {why}"

    async def _withdraw(self, found: ChangeSet) -> str:
        walk = _Walk(self._db, found)
        await walk.each(None, self._steps.take_back)
        await self._at_point("change_set.all_taken_back")

        def decide(found: ChangeSet) -> ChangeSet:
            return states.withdrawn(found, self._writer.now())

        after = await self._writer.write(found.id, Write("withdrawn", decide, cause_of_decision(found), found.rev))
        return f"{after.state}: taken back in {walk.stores} stores"

    async def _supersede(self, found: ChangeSet, other: str) -> None:
        """Let the change set that is rolled back be over. Its prices do not count any more."""

        def decide(found: ChangeSet) -> ChangeSet:
            return states.superseded(found, self._writer.now())

        try:
            await self._writer.write(other, Write("supersede", decide, cause_of_decision(found)))
        except NotAllowed:
            if (await self._writer.read(other)).state != "superseded":
                raise  # otherwise another process was faster, or this one before it stopped


class _Walk:
    """Walks over the stores of a change set, some at a time, so that any number of them takes little memory."""

    def __init__(self, db: OpenTable, found: ChangeSet) -> None:
        self._db = db
        self._found = found
        self._begun = time.monotonic()
        self._first_at: datetime | None = None
        self._last_at: datetime | None = None
        self.stores = 0

    async def each(self, which: tuple[ChangeStoreState, ...] | None, step: Step) -> None:
        """Take a step in each store in one of these states, None: of an earlier round. Others have been further before.

        A store that has to wait lets the others go on.
        """
        progress = ChangeProgress(change_set=self._found.id)
        waiting: RetryLater | None = None
        self.stores, self._first_at, self._last_at = 0, None, None
        async for page in store_pages(self._db, self._found.id):
            after: list[ChangeStore] = []
            for some in batches(page, STORES_AT_ONCE):
                outcomes = await asyncio.gather(*(self._one(each, which, step) for each in some), return_exceptions=True)
                waiting = _first_wait(outcomes) or waiting
                after += [each for each in outcomes if isinstance(each, ChangeStore)]
            self._note(after)
            progress = _added(progress, after)
            self.stores += len(page)
            if len(page) == STORES_AT_A_TIME:
                if after != list(page):  # otherwise an earlier call has told of more
                    await self._db.put(evolve(progress, staged=self._found.stores) if which == ("staged",) else progress)
                self._rest()
        if waiting is not None:
            raise waiting

    def bounds(self, otherwise: datetime) -> tuple[datetime, datetime]:
        """Return when the prices count in the first store, and in the last one."""
        return self._first_at or otherwise, self._last_at or otherwise

    async def _one(self, store: ChangeStore, which: tuple[ChangeStoreState, ...] | None, step: Step) -> ChangeStore:
        is_next = store.round < self._found.rev if which is None else store.state in which
        after = await step(self._found, store) if is_next else store
        if which == ("staged",) and after.state in NOT_STAGED:
            raise RetryLater(after=timedelta(seconds=1), reason=f"store {store.store} has to be staged again")
        return after

    def _note(self, stores: list[ChangeStore]) -> None:
        instants = [store.from_at for store in stores if isinstance(store.from_at, datetime)]
        if instants:
            self._first_at = min(instants) if self._first_at is None else min(self._first_at, *instants)
            self._last_at = max(instants) if self._last_at is None else max(self._last_at, *instants)

    def _rest(self) -> None:
        """Let the engine call again after a while."""
        if time.monotonic() - self._begun > SLICE_S:
            raise RetryLater(after=timedelta(seconds=1), reason=f"{self.stores} stores are done in this pass, and others follow")


def _first_wait(outcomes: list[ChangeStore | BaseException]) -> RetryLater | None:
    """Return what says that a store has to wait. Raises any other error, a decision of somebody else first."""
    errors = [each for each in outcomes if isinstance(each, BaseException) and not isinstance(each, RetryLater)]
    for error in sorted(errors, key=lambda each: not isinstance(each, Overtaken)):
        raise error
    return next((each for each in outcomes if isinstance(each, RetryLater)), None)


def _added(progress: ChangeProgress, stores: list[ChangeStore]) -> ChangeProgress:
    reached = [store.state for store in stores]
    return evolve(
        progress,
        staged=progress.staged + sum(state not in NOT_STAGED for state in reached),
        sealed=progress.sealed + sum(state in ("sealed", "settled") for state in reached),
        settled=progress.settled + reached.count("settled"),
    )
