"""Conformance kits for a store of your own, and a clock for tests.

Subclass a kit, give it a `store` fixture, and pytest tests your backend:

    class TestMyIndex(ScheduleIndexContract):
        @pytest_asyncio.fixture
        async def store(self): ...
"""

from tickler.clock import ManualClock
from tickler.testing.fire_contract import FireStoreContract
from tickler.testing.index_contract import ScheduleIndexContract
from tickler.testing.record_contract import RecordStoreContract
from tickler.testing.schedule_contract import ScheduleStoreContract
from tickler.testing.store_contract import StoreContract

__all__ = [
    "FireStoreContract",
    "ManualClock",
    "RecordStoreContract",
    "ScheduleIndexContract",
    "ScheduleStoreContract",
    "StoreContract",
]
