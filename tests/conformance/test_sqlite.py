"""Every kit over the SQLite store."""

from conformance.stores import OnSqlite
from tickler.testing import FireStoreContract, RecordStoreContract, ScheduleIndexContract, ScheduleStoreContract


class TestIndex(OnSqlite, ScheduleIndexContract):
    pass


class TestSchedules(OnSqlite, ScheduleStoreContract):
    pass


class TestRecords(OnSqlite, RecordStoreContract):
    pass


class TestFires(OnSqlite, FireStoreContract):
    pass
