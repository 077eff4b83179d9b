"""What the parts of a consumer share."""

from __future__ import annotations

from typing import NamedTuple

from tickler.clock import Clock
from tickler.table.definition import TableDefinition
from tickler.table.engines.change_log import ChangeLog
from tickler.table.engines.metadata import Metadata
from tickler.table.streams.options import ConsumerOptions


class StreamContext(NamedTuple):
    table: TableDefinition
    changes: ChangeLog
    metadata: Metadata
    clock: Clock
    options: ConsumerOptions
