"""Tickler: which of my users' schedules are due right now?"""

from typing import TYPE_CHECKING

from tickler.client import Tickler
from tickler.clock import Clock, ManualClock
from tickler.connect import connect, connect_sync, needing_extra
from tickler.deliver.claim_loop import Summary
from tickler.deliver.run_options import RunOptions
from tickler.errors import (
    FireNotFound,
    GiveUp,
    InvalidInput,
    InvalidSchedule,
    InvalidSignature,
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
from tickler.fires.fires import FirePage, HistoryPage
from tickler.model.delivery import Deliverer, Delivery, Outcome
from tickler.model.fire import Claim, Entry, Fire, Settlement
from tickler.model.index_row import IndexRow, SetAside
from tickler.model.policy import Policy
from tickler.model.record import Record
from tickler.model.revision import Revision
from tickler.model.schedule import Schedule, StoredSchedule
from tickler.model.target import HttpTarget, LambdaTarget, PythonTarget, SqsTarget, Target
from tickler.observe.diagnosis import Diagnosis, Finding
from tickler.observe.forecast import Forecast
from tickler.observe.why import Why
from tickler.schedules.schedules import Declared, Page
from tickler.version import VERSION
from tickler.webhooks.encryption import new_key
from tickler.webhooks.signature import new_secret
from tickler.webhooks.verify import Received, verify
from tickler.when import At, Cron, Every, Weekly, When, parse_when

if TYPE_CHECKING:
    from tickler.stores.dynamodb import DueItem, DynamoIndex

__version__ = VERSION

# Names that need an extra: imported when they are asked for.
_LATER = {"DueItem": "tickler.stores.dynamodb", "DynamoIndex": "tickler.stores.dynamodb"}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(needing_extra(_LATER[name], name), name)
    raise AttributeError(f"module 'tickler' has no attribute {name!r}")


__all__ = [
    "At",
    "Claim",
    "Clock",
    "Cron",
    "Declared",
    "Deliverer",
    "Delivery",
    "Diagnosis",
    "DueItem",
    "DynamoIndex",
    "Entry",
    "Every",
    "Finding",
    "Fire",
    "FireNotFound",
    "FirePage",
    "Forecast",
    "GiveUp",
    "HistoryPage",
    "HttpTarget",
    "IndexRow",
    "InvalidInput",
    "InvalidSchedule",
    "InvalidSignature",
    "InvalidWhen",
    "LambdaTarget",
    "ManagedRow",
    "ManualClock",
    "NeverFires",
    "Outcome",
    "Page",
    "PartlyWritten",
    "Policy",
    "PythonTarget",
    "Received",
    "Record",
    "Revision",
    "RunOptions",
    "Schedule",
    "ScheduleNotFound",
    "SchemaError",
    "SchemaMismatch",
    "SchemaMissing",
    "SchemaOutdated",
    "SchemaTooNew",
    "SetAside",
    "Settlement",
    "SqsTarget",
    "StoreUnavailable",
    "StoredSchedule",
    "Summary",
    "Target",
    "Tickler",
    "TicklerError",
    "UnknownTimezone",
    "VersionConflict",
    "Weekly",
    "When",
    "Why",
    "WorkerUnfit",
    "__version__",
    "connect",
    "connect_sync",
    "new_key",
    "new_secret",
    "parse_when",
    "verify",
]
