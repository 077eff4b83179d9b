"""The contract of a store of sends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple, Protocol

from tickler.model.record import Record
from tickler.model.schedule import Id, StoredSchedule
from tickler.schedules.write import ScheduleChange


class SeenSend(NamedTuple):
    """What is stored for the owner and key of a send: the record of an earlier send, expired or not, and a schedule.

    A store that does not read both at one instant reads the schedule first. Then the schedule of a send is never seen without its
    record, which would make it look like any other schedule.
    """

    record: Record | None
    schedule: StoredSchedule | None


class NewSend(NamedTuple):
    """A send to write: a new schedule, and the value of the record that remembers it until it expires."""

    schedule: ScheduleChange
    value: bytes
    expires_at: int


Decide = Callable[[SeenSend], NewSend | None]


def record_name(id: Id) -> str:
    """Return the name of the record of a send, of the kind `SEND`: a hash, because owner and key can be longer than a name."""
    return hashlib.blake2b(f"{id.owner}\0{id.key}".encode(), digest_size=16, person=b"tickler-send").hexdigest()


def label_of(id: Id) -> str:
    """Return what a transaction calls a send."""
    return f"the send {id}"


class SendStore(Protocol):
    """Keeps the schedule of a send and the record that remembers it consistent.

    A send is *read, decide, apply* in one transaction, as a change of a schedule is: the record and the schedule are written
    together or not at all, and what `decide` sees does not change before. Of two sends with the same owner and key, one is
    decided after the other, and sees what that wrote. `decide` does no I/O, and may be called again after a lost race. If it
    raises, nothing changes. `using` is as in `ScheduleStore`.
    """

    async def send(self, id: Id, decide: Decide, *, using: object = None) -> None:
        """Call `decide` with what is stored, and write the send that it returns, if any."""
