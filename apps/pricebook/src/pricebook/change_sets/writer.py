"""Writes of change sets: one conditional write for each transition, with its audit entry, and what it makes necessary."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from msgspec import Struct

from pricebook.access.caller import Caller
from pricebook.access.scope import may_see_scope
from pricebook.audit.entries import entry_of_change
from pricebook.change_sets.values import MAX_REASON
from pricebook.editions.head_writes import Cause
from pricebook.editions.timing import Now, whole_milliseconds
from pricebook.errors import HasChanged, InvalidField, NotAllowed, NotFound
from pricebook.identifiers import CARRY_ON, OWNER
from pricebook.model import ChangeSet
from pricebook.utc_now import utc_now
from tickler import Policy, PythonTarget, Tickler
from tickler.errors import ConditionFailed, TransactionConflict
from tickler.table import OpenTable, Transaction, evolve

TRIES = 20
POLICY = Policy(timeout=300, attempts=20, backoff=(1, 5, 15, 60, 300))

Decide = Callable[[ChangeSet], ChangeSet]
Also = Callable[[Transaction, ChangeSet], Awaitable[None]]  # adds to the transaction of a write


class Write(Struct, frozen=True):
    """A write of a change set. `rev` is what the caller has seen; `lines` is how many were added or removed, for the audit."""

    action: str
    decide: Decide
    cause: Cause
    rev: int | None = None
    lines: int | None = None
    also: Also | None = None


class ChangeSetWriter:
    def __init__(self, t: Tickler, db: OpenTable) -> None:
        self._t = t
        self._db = db
        self.now: Now = lambda: whole_milliseconds(utc_now(t))

    async def read(self, id: str) -> ChangeSet:
        if not id:
            raise NotFound("change set")
        found = await self._db.get(ChangeSet.key.id(id))
        if found is None:
            raise NotFound("change set")
        return found

    async def visible(self, caller: Caller, id: str) -> ChangeSet:
        """Return a change set if all its stores are the caller's."""
        found = await self.read(id)
        if not may_see_scope(caller, found.scope, found.created_by):
            raise NotFound("change set")
        return found

    async def create(self, new: ChangeSet, cause: Cause, action: str = "create") -> ChangeSet:
        async with self._db.transaction() as tx:
            tx.create(new)
            tx.create(entry_of_change(action, None, new, new.created_at, cause))
        return new

    async def write(self, id: str, write: Write) -> ChangeSet:
        """Decide by the change set as it is, and write that unless somebody else has changed it meanwhile: then decide anew."""
        for _ in range(TRIES):
            before = await self.read(id)
            if write.rev is not None and before.rev != write.rev:
                raise HasChanged(f"change set {id}", before.rev)
            after = evolve(write.decide(before), rev=before.rev + 1)
            if await self._written(before, after, write):
                return after
        raise NotAllowed(f"change set {id}: others change it all the time: try again")

    async def _written(self, before: ChangeSet, after: ChangeSet, write: Write) -> bool:
        try:
            async with self._db.transaction() as tx:
                tx.replace(after, when=ChangeSet.rev == before.rev)
                tx.create(entry_of_change(write.action, before, after, self.now(), write.cause, lines=write.lines))
                if write.also is not None:
                    await write.also(tx, after)
        except TransactionConflict:
            return False
        except ConditionFailed as error:
            if error.name != repr(before.key):
                raise
            return False
        return True

    async def begin(self, tx: Transaction, found: ChangeSet, again: str = "") -> None:
        """Let the engine carry a change set on once the transaction commits. `again` tells one begin from another."""
        name = f"change-set/{found.id}/{found.rev}{again and f'/{again}'}"
        await self._t.send(OWNER, name, PythonTarget(CARRY_ON), {"id": found.id}, policy=POLICY, using=tx)

    async def push_due(self, found: ChangeSet, due_at: object, *, begin: bool) -> bool:
        """Let others look at a change set at a later instant only. False if somebody was first. It is no transition."""
        due = ChangeSet.due_at.set(due_at)  # type: ignore[arg-type]  # an instant
        try:
            async with self._db.transaction() as tx:
                tx.update(found.key, due, when=(ChangeSet.rev == found.rev) & (ChangeSet.due_at == found.due_at))
                if begin:
                    await self.begin(tx, found, f"{found.due_at}")
        except (ConditionFailed, TransactionConflict):
            return False
        return True


def new_id() -> str:
    return secrets.token_hex(8)


def cause_of(caller: Caller, reason: str = "", request: str = "") -> Cause:
    """Return who decides, and why. A reason is kept with each price, so that it may not be long."""
    if len(reason) > MAX_REASON:
        raise InvalidField("reason", f"has {len(reason):,} characters: use at most {MAX_REASON:,}")
    return Cause(caller.id, reason, request)
