"""Every kit over the DynamoDB store."""

from conformance.stores import OnDynamodb
from tickler.testing import FireStoreContract, RecordStoreContract, ScheduleIndexContract, ScheduleStoreContract


class TestIndex(OnDynamodb, ScheduleIndexContract):
    pass


class TestSchedules(OnDynamodb, ScheduleStoreContract):
    pass


class TestFires(OnDynamodb, FireStoreContract):
    pass


class TestRecords(OnDynamodb, RecordStoreContract):
    pass
