"""Every error Tickler raises, in one tree.

TicklerError
├── InvalidInput                an argument cannot be used (also a ValueError)
│   ├── InvalidWhen             a time expression cannot be read
│   │   └── UnknownTimezone     this machine's time zone database lacks the zone
│   ├── InvalidSchedule         a field of a schedule is invalid
│   ├── NeverFires              the schedule is valid, but no instant is left at which it would fire
│   ├── ManagedRow              the index row mirrors a schedule: change the schedule instead
│   ├── DecryptionFailed        an encrypted text is of another key or purpose, or was changed
│   ├── InvalidItem             an item does not fit its entity, or is too large
│   └── InvalidCursor           the cursor of a page is of another query, or not ours
├── ScheduleNotFound            no schedule has that owner and key (also a LookupError)
├── FireNotFound                no fire has that id, or it is in another state than the call needs (also a LookupError)
├── ItemNotFound                no item has that key (also a LookupError)
├── ConsumerNotFound            no consumer of that name has run on a table (also a LookupError)
├── ChangeNotFound              no parked change has that id (also a LookupError)
├── ConditionFailed             an item is not as the condition of a write demands; nothing changed
├── TransactionConflict         others changed what a transaction had read; nothing changed
├── SendConflict                an owner and key were sent before with other content, or are those of a schedule
├── VersionConflict             another caller wrote in between
├── InvalidSignature            a request is not proven to come from Tickler, or is too old
├── StoreUnavailable            the store did not answer, or is locked; nothing changed
│   └── PartlyWritten           some of many schedules were written before that
├── SchemaError                 the store's tables do not fit this version of Tickler
│   ├── SchemaMissing           there are none
│   ├── SchemaMismatch          their keys differ
│   ├── SchemaOutdated          they are older: migrate
│   └── SchemaTooNew            they are newer: upgrade this worker
├── AddressRefused              a URL leads to an address that may not be connected to
├── WorkerUnfit                 this worker lacks time zones that others have, and must not claim
└── GiveUp                      raised by a handler: this fire is dead, do not retry it

A handler postpones a fire by raising `RetryLater`. It is in `model/retry_later.py`, as it has an instant or a duration.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable


class TicklerError(Exception):
    """Base class of all errors."""

    def __reduce__(self) -> tuple[Callable[..., TicklerError], tuple[type[TicklerError], tuple[object, ...], dict[str, object]]]:
        """Make errors picklable, whatever arguments their constructors take."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[TicklerError], args: tuple[object, ...], fields: dict[str, object]) -> TicklerError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class InvalidInput(TicklerError, ValueError):
    """An argument cannot be used. The message says what is wrong with it and what to pass instead."""


class InvalidWhen(InvalidInput):
    """A time expression cannot be read. `field` names the part at fault, `text` is what was given.

    `reason` says what is wrong with `text`: a predicate such as "is not a date and time", or with `inside`, a sentence about a
    part of it such as "hour '25' is invalid".
    """

    def __init__(self, field: str, text: str, reason: str, *, inside: bool = False) -> None:
        super().__init__(f"in {text!r}, {reason}" if inside else f"{field} {text!r} {reason}")
        self.field = field
        self.text = text
        self.reason = reason
        self.inside = inside


class UnknownTimezone(InvalidWhen):
    """The time zone database of this machine does not have the zone `name`. `reason` says what to use instead."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__("tz", name, reason)
        self.args = (f"unknown time zone {name!r}: {reason}",)
        self.name = name


class InvalidSchedule(InvalidInput):
    """A field of a schedule is invalid. `position` is the place of the schedule in a `put_many`."""

    def __init__(self, field: str, reason: str, position: int | None = None) -> None:
        super().__init__(f"{field}: {reason}" if position is None else f"schedule {position}: {field}: {reason}")
        self.field = field
        self.reason = reason
        self.position = position

    def at(self, position: int) -> InvalidSchedule:
        """Return the same error for the schedule at `position`."""
        return InvalidSchedule(self.field, self.reason, position)


class NeverFires(InvalidInput):
    """The schedule would never fire. `reason` says why no instant is left; `sentence` is the message without the remedy."""

    def __init__(self, owner: str, key: str, reason: str, position: int | None = None) -> None:
        place = "" if position is None else f"schedule {position}: "
        self.sentence = f"{place}{owner}/{key} would never fire: {reason}"
        super().__init__(f"{self.sentence}; set enabled to false to store it paused")
        self.owner = owner
        self.key = key
        self.reason = reason
        self.position = position

    def at(self, position: int) -> NeverFires:
        """Return the same error for the schedule at `position`."""
        return NeverFires(self.owner, self.key, self.reason, position)


class ManagedRow(InvalidInput):
    """The index row mirrors a schedule, so it changes only with that schedule."""

    def __init__(self, owner: str, key: str) -> None:
        super().__init__(f"{owner}/{key} mirrors a schedule: change it with schedules.put, pause or delete, or use another key")
        self.owner = owner
        self.key = key


class DecryptionFailed(InvalidInput):
    """An encrypted text cannot be decrypted for this purpose. `reason` says why, and what to do."""

    def __init__(self, purpose: str, reason: str) -> None:
        super().__init__(f"{purpose}: {reason}")
        self.purpose = purpose
        self.reason = reason


class InvalidItem(InvalidInput):
    """An item does not fit its entity, or is too large. `reason` says which attribute, and what it must be."""

    def __init__(self, entity: str, reason: str) -> None:
        super().__init__(f"{entity}: {reason}")
        self.entity = entity
        self.reason = reason


class InvalidCursor(InvalidInput):
    """The cursor of a page cannot be used for this query. `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}: start from the first page")
        self.reason = reason


class ScheduleNotFound(TicklerError, LookupError):
    """No schedule has that owner and key."""

    def __init__(self, owner: str, key: str) -> None:
        super().__init__(f"there is no schedule {owner}/{key}: it may have been deleted, or have another name")
        self.owner = owner
        self.key = key


class FireNotFound(TicklerError, LookupError):
    """No fire has that id, or it is in another state than the call needs."""

    def __init__(self, fire_id: str, reason: str) -> None:
        super().__init__(f"{fire_id[:80]}: {reason}")
        self.fire_id = fire_id
        self.reason = reason


class ItemNotFound(TicklerError, LookupError):
    """No item has that key: it was never written, or was deleted, or has expired."""

    def __init__(self, entity: str, pk: str, sk: str) -> None:
        self.name = f"{entity}({pk!r}, {sk!r})"
        super().__init__(f"there is no {self.name}: put it first, or use upsert")
        self.entity = entity
        self.pk = pk
        self.sk = sk


class ConsumerNotFound(TicklerError, LookupError):
    """No consumer of that name has run on the table. `known` are those that have."""

    def __init__(self, name: str, table: str, known: Iterable[str]) -> None:
        self.known = list(known)
        have = f"there are {', '.join(self.known)}" if self.known else "none has run yet"
        super().__init__(f"no consumer {name!r} has run on the table {table!r}: {have}")
        self.name = name
        self.table = table


class ChangeNotFound(TicklerError, LookupError):
    """No parked change has that id: it was delivered or discarded meanwhile, or is of another consumer."""

    def __init__(self, id: str) -> None:
        super().__init__(f"no parked change has the id {id!r}: list them with `tickler table parked`")
        self.id = id


class ConditionFailed(TicklerError):
    """An item is not as the condition of a write demands, and nothing changed. `found` is the item, None if there is none."""

    def __init__(self, name: str, condition: str, found: object) -> None:
        super().__init__(f"{name} does not satisfy {condition}; nothing changed: read it again, and decide anew")
        self.name = name
        self.condition = condition
        self.found = found


class TransactionConflict(TicklerError):
    """Others changed what a transaction had read, so none of its writes happened."""

    def __init__(self, name: str) -> None:
        super().__init__(f"others changed {name} while a transaction depended on it; nothing changed: repeat the transaction")
        self.name = name


class SendConflict(TicklerError):
    """An owner and key were sent before with other content, or are those of a schedule, so nothing was sent.

    `fire_id` is the fire of the earlier send, None if there was none. `reason` says what is in the way, and the remedy.
    """

    def __init__(self, owner: str, key: str, reason: str, fire_id: str | None = None) -> None:
        super().__init__(f"{owner}/{key} {reason}")
        self.owner = owner
        self.key = key
        self.reason = reason
        self.fire_id = fire_id


class VersionConflict(TicklerError):
    """Another caller wrote in between. `expected` is the version that the caller had read, `found` the stored one (0: none).

    If they are equal, the schedule was deleted and created again meanwhile.
    """

    def __init__(self, name: str, expected: int, found: int) -> None:
        super().__init__(f"{name} {_conflict(expected, found)}")
        self.name = name
        self.expected = expected
        self.found = found


class InvalidSignature(TicklerError):
    """A request is not proven to come from Tickler, or is too old. Answer 401 and do nothing. `reason` says why."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}: {remedy}")
        self.reason = reason
        self.remedy = remedy


class StoreUnavailable(TicklerError):
    """The store did not answer, or is locked. Nothing changed, and the call can be repeated."""


class PartlyWritten(StoreUnavailable):
    """Some of many schedules were completely written before the store failed. Repeating the call is safe."""

    def __init__(self, store: str, done: int, total: int, cause: Exception) -> None:
        super().__init__(
            f"{store}: {done} of {total} schedules were written before an error ({cause}): repeat the call to write the rest"
        )
        self.done = done
        self.total = total


class SchemaError(TicklerError):
    """The store's tables do not fit this version of Tickler."""


def _migrate(store: str) -> str:
    where = shlex.quote(store) if "://" in store else "with its URL"
    return f"run `tickler migrate --store {where}`"


class SchemaMissing(SchemaError):
    """The store has no tables yet; or not `table`, one of an application."""

    def __init__(self, store: str, table: str | None = None) -> None:
        super().__init__(
            f"{store} has no Tickler tables: {_migrate(store)}, or write create=1 in its URL"
            if table is None
            else f"{store}: there is no table {table!r}: run `tickler table create`, or open it with create=True"
        )
        self.store = store
        self.table = table


class SchemaMismatch(SchemaError):
    """The table exists, but its keys, its indexes or the entity of an item are other ones. `attribute` names what is at fault."""

    def __init__(self, store: str, reason: str, attribute: str | None = None) -> None:
        super().__init__(f"{store}: {reason}")
        self.reason = reason
        self.attribute = attribute


class SchemaOutdated(SchemaError):
    """The tables are of an earlier version."""

    def __init__(self, store: str, found: int, needed: int) -> None:
        super().__init__(f"{store} has schema version {found}, and this Tickler needs {needed}: {_migrate(store)}")
        self.found = found
        self.needed = needed


class SchemaTooNew(SchemaError):
    """The tables are of a later version than this Tickler can work with."""

    def __init__(self, store: str, found: int, supported: int) -> None:
        super().__init__(
            f"{store} has schema version {found}, and this Tickler works up to version {supported + 1}: upgrade Tickler"
        )
        self.found = found
        self.supported = supported


class AddressRefused(TicklerError):
    """A URL leads to an address that may not be connected to, or is none. The message says why, and how to allow it."""


class WorkerUnfit(TicklerError):
    """This worker lacks time zones that other workers have. It claims nothing, since it would set valid rows aside."""

    def __init__(self, zones: Iterable[str]) -> None:
        self.zones = sorted(zones)
        super().__init__(
            f"this machine lacks the time zones {', '.join(self.zones)}, which schedules in this store use; nothing was "
            "claimed: upgrade the tzdata package or the system's time zone database, then start this worker again"
        )


class GiveUp(TicklerError):
    """For handlers to raise when a fire can never succeed: it becomes dead at once instead of being retried."""


def _conflict(expected: int, found: int) -> str:
    again = "read it again and repeat the change"
    if not found:
        return (
            f"does not exist, and version {expected} was expected: create it again"
            if expected
            else "does not exist yet: create it first"
        )
    if not expected:
        return f"already exists at version {found}: choose another name, or change that one"
    if found == expected:
        return f"was deleted and created again, so it is not the version {expected} that was read: {again}"
    return f"is at version {found}, not at version {expected}: {again}"
