"""Tickler: which of my users' schedules are due right now?"""

from tickler.clock import Clock, ManualClock
from tickler.connect import Tickler, connect, connect_sync
from tickler.errors import (
    InvalidInput,
    InvalidSchedule,
    InvalidWhen,
    ManagedRow,
    NeverFires,
    ScheduleNotFound,
    SchemaError,
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

__version__ = "0.1.0"

__all__ = [
    "At",
    "Clock",
    "Cron",
    "Declared",
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
    "Policy",
    "PythonTarget",
    "Record",
    "Schedule",
    "ScheduleNotFound",
    "SchemaError",
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
