"""Every kit over the SQLite store."""

from conformance.stores import OnSqlite
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


class TestIndex(OnSqlite, ScheduleIndexContract):
    pass


class TestSchedules(OnSqlite, ScheduleStoreContract):
    pass


class TestRecords(OnSqlite, RecordStoreContract):
    pass


class TestFires(OnSqlite, FireStoreContract):
    pass


class TestSends(OnSqlite, SendStoreContract):
    pass


class TestContents(OnSqlite, ContentsContract):
    pass


class TestOwnerRows(OnSqlite, OwnerRowsContract):
    pass


class TestOrphan(OnSqlite, OrphanContract):
    pass


class TestExpiredCount(OnSqlite, ExpiredCountContract):
    pass
