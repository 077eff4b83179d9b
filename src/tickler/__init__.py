"""Tickler: which of my users' schedules are due right now?"""

from tickler.client import Tickler
from tickler.clock import Clock, ManualClock
from tickler.connect import connect, connect_sync
from tickler.deliver.run_options import RunOptions
from tickler.errors import (
    GiveUp,
    InvalidInput,
    InvalidSchedule,
    InvalidSignature,
    NeverFires,
    ScheduleNotFound,
    StoreUnavailable,
    TicklerError,
    VersionConflict,
)
from tickler.model.delivery import Deliverer, Delivery, Outcome
from tickler.model.index_row import IndexRow
from tickler.model.policy import Policy
from tickler.model.retry_later import RetryLater
from tickler.model.schedule import Schedule, StoredSchedule
from tickler.model.target import HttpTarget, LambdaTarget, PythonTarget, SqsTarget, Target
from tickler.version import VERSION
from tickler.webhooks.key_ring import new_key
from tickler.webhooks.signature import new_secret
from tickler.webhooks.verify import Received, verify
from tickler.when import At, Cron, Every, Weekly, When, parse_when

__version__ = VERSION

__all__ = [
    "At",
    "Clock",
    "Cron",
    "Deliverer",
    "Delivery",
    "Every",
    "GiveUp",
    "HttpTarget",
    "IndexRow",
    "InvalidInput",
    "InvalidSchedule",
    "InvalidSignature",
    "LambdaTarget",
    "ManualClock",
    "NeverFires",
    "Outcome",
    "Policy",
    "PythonTarget",
    "Received",
    "RetryLater",
    "RunOptions",
    "Schedule",
    "ScheduleNotFound",
    "SqsTarget",
    "StoreUnavailable",
    "StoredSchedule",
    "Target",
    "Tickler",
    "TicklerError",
    "VersionConflict",
    "Weekly",
    "When",
    "__version__",
    "connect",
    "connect_sync",
    "new_key",
    "new_secret",
    "parse_when",
    "verify",
]
