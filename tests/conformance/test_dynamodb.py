"""Every kit over the DynamoDB store."""

from conformance.stores import OnDynamodb
from tickler.testing import (
    ContentsContract,
    FireStoreContract,
    OwnerRowsContract,
    RecordStoreContract,
    ScheduleIndexContract,
    ScheduleStoreContract,
    SendStoreContract,
)


class TestIndex(OnDynamodb, ScheduleIndexContract):
    pass


class TestSchedules(OnDynamodb, ScheduleStoreContract):
    pass


class TestFires(OnDynamodb, FireStoreContract):
    pass


class TestRecords(OnDynamodb, RecordStoreContract):
    pass


class TestSends(OnDynamodb, SendStoreContract):
    pass


class TestContents(OnDynamodb, ContentsContract):
    pass


class TestOwnerRows(OnDynamodb, OwnerRowsContract):
    pass
