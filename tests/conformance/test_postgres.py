"""Every kit over the PostgreSQL store."""

from conformance.stores import OnPostgres
from tickler.testing import FireStoreContract, RecordStoreContract, ScheduleIndexContract, ScheduleStoreContract


class TestIndex(OnPostgres, ScheduleIndexContract):
    pass


class TestSchedules(OnPostgres, ScheduleStoreContract):
    pass


class TestRecords(OnPostgres, RecordStoreContract):
    pass


class TestFires(OnPostgres, FireStoreContract):
    pass
