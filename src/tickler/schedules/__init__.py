"""KEEP: schedules, as users declare them."""

from tickler.schedules.contract import ScheduleStore
from tickler.schedules.schedules import Declared, Page, Schedules

__all__ = ["Declared", "Page", "ScheduleStore", "Schedules"]
