"""Every kit over the DynamoDB store."""

from conformance.stores import OnDynamodb
from tickler.testing import RecordStoreContract, ScheduleIndexContract, ScheduleStoreContract


class TestIndex(OnDynamodb, ScheduleIndexContract):
    pass


class TestSchedules(OnDynamodb, ScheduleStoreContract):
    pass


class TestRecords(OnDynamodb, RecordStoreContract):
    pass
