"""The schedule index, which finds due schedules."""

from tickler.index.contract import ScheduleIndex
from tickler.index.index import Index
from tickler.model.index_row import IndexRow, SetAside

__all__ = ["Index", "IndexRow", "ScheduleIndex", "SetAside"]
