"""Every error Tickler raises, in one tree.

TicklerError
├── InvalidInput                what was passed cannot be used (also a ValueError)
│   ├── InvalidWhen             a time expression does not read
│   │   └── UnknownTimezone     … because this machine knows no such zone
│   ├── InvalidSchedule         owner, key, payload, policy or bounds do not fit
│   ├── NeverFires              it reads, but no instant is left at which it would fire
│   └── ManagedRow              the index row belongs to a schedule; change the schedule
├── ScheduleNotFound            no schedule has that owner and key (also a LookupError)
├── FireNotFound                no fire has that id, or it is not in the state that was asked for (also a LookupError)
├── VersionConflict             somebody else wrote in between
├── InvalidSignature            what was received is not proven to come from Tickler, or not just now
├── StoreUnavailable            the store did not answer or is locked; nothing was half done
│   └── PartlyWritten           … after some of many schedules were written
├── SchemaError                 the store's tables do not fit this version
│   ├── SchemaMissing           … there are none
│   ├── SchemaMismatch          … they are keyed differently
│   ├── SchemaOutdated          … they are older: migrate
│   └── SchemaTooNew            … they are newer: upgrade this worker
├── WorkerUnfit                 this worker lacks what others have; it must not claim
└── GiveUp                      raised by a handler: this fire will never work, do not try again
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable


class TicklerError(Exception):
    """The base of all of them."""

    def __reduce__(self) -> tuple[Callable[..., TicklerError], tuple[type[TicklerError], tuple[object, ...], dict[str, object]]]:
        """Survive the way between processes, whatever the constructor takes."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[TicklerError], args: tuple[object, ...], fields: dict[str, object]) -> TicklerError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class InvalidInput(TicklerError, ValueError):
    """What was passed cannot be used; the message says what it looks like and what would do."""


class InvalidWhen(InvalidInput):
    """A time expression does not read. `field` is the part at fault, `text` what was given."""

    def __init__(self, field: str, text: str, reason: str) -> None:
        super().__init__(f"{field} of {text!r}: {reason}")
        self.field = field
        self.text = text
        self.reason = reason


class UnknownTimezone(InvalidWhen):
    """This machine's time zone database has no such zone. `name` is the zone."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__("tz", name, reason)
        self.name = name


class InvalidSchedule(InvalidInput):
    """A field of a schedule does not fit. `position` is its place in a `put_many`, if it came in one."""

    def __init__(self, field: str, reason: str, position: int | None = None) -> None:
        super().__init__(f"{field}: {reason}" if position is None else f"schedule {position}: {field}: {reason}")
        self.field = field
        self.reason = reason
        self.position = position

    def at(self, position: int) -> InvalidSchedule:
        """The same, of the schedule at that place."""
        return InvalidSchedule(self.field, self.reason, position)


class NeverFires(InvalidInput):
    """The schedule would sleep for ever. `reason` says why no instant is left; `sentence` is all but the remedy."""

    def __init__(self, owner: str, key: str, reason: str, position: int | None = None) -> None:
        place = "" if position is None else f"schedule {position}: "
        self.sentence = f"{place}{owner}/{key} would never fire: {reason}"
        super().__init__(f"{self.sentence}; set enabled to false to keep it asleep")
        self.owner = owner
        self.key = key
        self.reason = reason
        self.position = position

    def at(self, position: int) -> NeverFires:
        """The same, of the schedule at that place."""
        return NeverFires(self.owner, self.key, self.reason, position)


class ManagedRow(InvalidInput):
    """The index row mirrors a schedule, so only the schedule may change it."""

    def __init__(self, owner: str, key: str) -> None:
        super().__init__(
            f"{owner}/{key} is kept by `schedules`, which mirrors it here: use schedules.put, pause or delete, or another key"
        )
        self.owner = owner
        self.key = key


class ScheduleNotFound(TicklerError, LookupError):
    """No schedule has that owner and key."""

    def __init__(self, owner: str, key: str) -> None:
        super().__init__(f"no schedule {owner}/{key}: it may have been deleted, or has another name")
        self.owner = owner
        self.key = key


class FireNotFound(TicklerError, LookupError):
    """No fire has that id, or it is in no state in which that can be done."""

    def __init__(self, fire_id: str, reason: str) -> None:
        super().__init__(f"{fire_id[:80]}: {reason}")
        self.fire_id = fire_id
        self.reason = reason


class VersionConflict(TicklerError):
    """Somebody else wrote in between. `expected` is what the caller had seen, `found` what is there (0: nothing).

    Where they are the same, it was deleted meanwhile, and made anew.
    """

    def __init__(self, name: str, expected: int, found: int) -> None:
        super().__init__(f"{name} {_conflict(expected, found)}")
        self.name = name
        self.expected = expected
        self.found = found


class InvalidSignature(TicklerError):
    """What was received is not proven to come from Tickler, or not just now: answer 401 and do nothing. `reason` says why."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}: {remedy}")
        self.reason = reason
        self.remedy = remedy


class StoreUnavailable(TicklerError):
    """The store did not answer, or is locked. Nothing was half done; the call can be repeated."""


class PartlyWritten(StoreUnavailable):
    """Some of many schedules were written when the store failed, each of them whole. Repeating the call is safe."""

    def __init__(self, store: str, done: int, total: int, cause: Exception) -> None:
        super().__init__(
            f"{store}: {done} of {total} schedules were written, then: {cause}; repeat the call, it goes on from there"
        )
        self.done = done
        self.total = total


class SchemaError(TicklerError):
    """The store's tables do not fit this version of Tickler."""


def _migrate(store: str) -> str:
    where = shlex.quote(store) if "://" in store else "with its URL"
    return f"run `tickler migrate --store {where}`"


class SchemaMissing(SchemaError):
    """The store has no tables yet."""

    def __init__(self, store: str) -> None:
        super().__init__(f"{store} has no Tickler tables: {_migrate(store)}, or write create=1 in its URL")
        self.store = store


class SchemaMismatch(SchemaError):
    """The table is there, and is not keyed as it has to be. `attribute` is the one at fault, if it is one."""

    def __init__(self, store: str, reason: str, attribute: str | None = None) -> None:
        super().__init__(f"{store}: {reason}")
        self.reason = reason
        self.attribute = attribute


class SchemaOutdated(SchemaError):
    """The tables are of an earlier version."""

    def __init__(self, store: str, found: int, needed: int) -> None:
        super().__init__(f"{store} has schema version {found} and this Tickler needs {needed}: {_migrate(store)}")
        self.found = found
        self.needed = needed


class SchemaTooNew(SchemaError):
    """The tables are of a version this Tickler cannot work with."""

    def __init__(self, store: str, found: int, supported: int) -> None:
        super().__init__(
            f"{store} has schema version {found}, which needs a Tickler of schema version {found - 1} or later; "
            f"this one has {supported} and works up to {supported + 1}: upgrade the tickler package"
        )
        self.found = found
        self.supported = supported


class WorkerUnfit(TicklerError):
    """This worker lacks zones that other workers have, so it claims nothing rather than set good rows aside."""

    def __init__(self, zones: Iterable[str]) -> None:
        self.zones = sorted(zones)
        super().__init__(
            f"this machine lacks the time zones {', '.join(self.zones)}, which schedules here were written with; nothing was "
            "claimed: upgrade the tzdata package or the system's time zone database, then start this worker again"
        )


class GiveUp(TicklerError):
    """For handlers to raise: this fire will never work, so it is dead at once instead of being tried again."""


def _conflict(expected: int, found: int) -> str:
    again = "read it again and repeat the change"
    if not found:
        return f"does not exist, not at version {expected}: make it anew" if expected else "does not exist yet: make it first"
    if not expected:
        return f"is there already, at version {found}: choose another name, or change that one"
    if found == expected:
        return f"was deleted and made anew, and is not the version {expected} that was read: {again}"
    return f"is at version {found}, not at version {expected}: {again}"
