"""Tickler: which of my users' schedules are due right now?"""

from typing import TYPE_CHECKING

from tickler.clock import Clock, ManualClock
from tickler.connect import Tickler, connect, connect_sync, needing_extra
from tickler.errors import (
    InvalidInput,
    InvalidSchedule,
    InvalidWhen,
    ManagedRow,
    NeverFires,
    PartlyWritten,
    ScheduleNotFound,
    SchemaError,
    SchemaMismatch,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    StoreUnavailable,
    TicklerError,
    UnknownTimezone,
    VersionConflict,
    WorkerUnfit,
)
from tickler.index import IndexRow, SetAside
from tickler.policy import Policy
from tickler.records import Record
from tickler.schedule import Schedule, StoredSchedule
from tickler.schedules import Declared, Page
from tickler.target import HttpTarget, PythonTarget
from tickler.when import At, Cron, Every, Weekly, When, parse_when

if TYPE_CHECKING:
    from tickler.stores.dynamodb import DueItem, DynamoIndex

__version__ = "0.1.0"

# Names that need an extra: imported when they are asked for.
_LATER = {"DueItem": "tickler.stores.dynamodb", "DynamoIndex": "tickler.stores.dynamodb"}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(needing_extra(_LATER[name], name), name)
    raise AttributeError(f"module 'tickler' has no attribute {name!r}")


__all__ = [
    "At",
    "Clock",
    "Cron",
    "Declared",
    "DueItem",
    "DynamoIndex",
    "Every",
    "HttpTarget",
    "IndexRow",
    "InvalidInput",
    "InvalidSchedule",
    "InvalidWhen",
    "ManagedRow",
    "ManualClock",
    "NeverFires",
    "Page",
    "PartlyWritten",
    "Policy",
    "PythonTarget",
    "Record",
    "Schedule",
    "ScheduleNotFound",
    "SchemaError",
    "SchemaMismatch",
    "SchemaMissing",
    "SchemaOutdated",
    "SchemaTooNew",
    "SetAside",
    "StoreUnavailable",
    "StoredSchedule",
    "Tickler",
    "TicklerError",
    "UnknownTimezone",
    "VersionConflict",
    "Weekly",
    "When",
    "WorkerUnfit",
    "__version__",
    "connect",
    "connect_sync",
    "parse_when",
]
