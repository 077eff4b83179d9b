"""Every kit over the memory store."""

from conformance.stores import OnMemory
from tickler.testing import FireStoreContract, RecordStoreContract, ScheduleIndexContract, ScheduleStoreContract


class TestIndex(OnMemory, ScheduleIndexContract):
    pass


class TestSchedules(OnMemory, ScheduleStoreContract):
    pass


class TestRecords(OnMemory, RecordStoreContract):
    pass


class TestFires(OnMemory, FireStoreContract):
    pass
