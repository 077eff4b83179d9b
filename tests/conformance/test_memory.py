"""Every kit over the memory store."""

from conformance.stores import OnMemory
from tickler.testing import RecordStoreContract, ScheduleIndexContract, ScheduleStoreContract


class TestIndex(OnMemory, ScheduleIndexContract):
    pass


class TestSchedules(OnMemory, ScheduleStoreContract):
    pass


class TestRecords(OnMemory, RecordStoreContract):
    pass
