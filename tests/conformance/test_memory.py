"""Every kit over the memory store."""

from conformance.stores import OnMemory
from tickler.testing import (
    ContentsContract,
    ExpiredCountContract,
    FireStoreContract,
    OrphanContract,
    OwnerRowsContract,
    RecordStoreContract,
    ScheduleIndexContract,
    ScheduleStoreContract,
    SendStoreContract,
)


class TestIndex(OnMemory, ScheduleIndexContract):
    pass


class TestSchedules(OnMemory, ScheduleStoreContract):
    pass


class TestRecords(OnMemory, RecordStoreContract):
    pass


class TestFires(OnMemory, FireStoreContract):
    pass


class TestSends(OnMemory, SendStoreContract):
    pass


class TestContents(OnMemory, ContentsContract):
    pass


class TestOwnerRows(OnMemory, OwnerRowsContract):
    pass


class TestOrphan(OnMemory, OrphanContract):
    pass


class TestExpiredCount(OnMemory, ExpiredCountContract):
    pass
