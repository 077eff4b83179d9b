"""Every kit over the PostgreSQL store."""

from conformance.stores import OnPostgres
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


class TestIndex(OnPostgres, ScheduleIndexContract):
    pass


class TestSchedules(OnPostgres, ScheduleStoreContract):
    pass


class TestRecords(OnPostgres, RecordStoreContract):
    pass


class TestFires(OnPostgres, FireStoreContract):
    pass


class TestSends(OnPostgres, SendStoreContract):
    pass


class TestContents(OnPostgres, ContentsContract):
    pass


class TestOwnerRows(OnPostgres, OwnerRowsContract):
    pass


class TestOrphan(OnPostgres, OrphanContract):
    pass


class TestExpiredCount(OnPostgres, ExpiredCountContract):
    pass
