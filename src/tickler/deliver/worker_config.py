"""The settings of one worker, as a value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import msgspec

from tickler.deliver.run_options import RunOptions
from tickler.stores.store import Store

_MS = timedelta(milliseconds=1)


class WorkerConfig(msgspec.Struct, frozen=True):
    """`reopen` returns another store on the same data, for the thread that extends leases while the event loop is blocked."""

    name: str
    options: RunOptions
    retention_ms: int  # of the history that the worker writes
    reopen: Callable[[], Store] | None = None

    @property
    def lease_ms(self) -> int:
        return self.options.lease // _MS

    @property
    def ahead_ms(self) -> int:
        return self.options.ahead // _MS
