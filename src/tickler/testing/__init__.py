"""Virtual time for tests of applications, an unreliable engine of tables, and conformance kits for a store of your own.

`play` lets time pass: it moves a `ManualClock` from one due instant to the next, and delivers.

Subclass a kit, give it a `store` fixture, and pytest tests your backend:

    class TestMyIndex(ScheduleIndexContract):
        @pytest_asyncio.fixture
        async def store(self): ...

`TableContract` and `StreamContract` are for an engine of `tickler.table`, and take an `engine` fixture. `ChaosEngine` wraps an
engine, and misbehaves as DynamoDB may: stale reads, throttling, conflicts and late expiry.

`ContentsContract`, `OrphanContract`, `OwnerRowsContract` and `ExpiredCountContract` are for abilities that a store may leave out.
"""

from tickler.clock import ManualClock
from tickler.testing.chaos import ChaosEngine
from tickler.testing.contents_contract import ContentsContract
from tickler.testing.fire_contract import FireStoreContract
from tickler.testing.index_contract import ScheduleIndexContract
from tickler.testing.optional_contract import ExpiredCountContract, OrphanContract, OwnerRowsContract
from tickler.testing.play import Played, play
from tickler.testing.record_contract import RecordStoreContract
from tickler.testing.schedule_contract import ScheduleStoreContract
from tickler.testing.send_contract import SendStoreContract
from tickler.testing.store_contract import StoreContract
from tickler.testing.stream_contract import StreamContract
from tickler.testing.table_contract import TableContract

__all__ = [
    "ChaosEngine",
    "ContentsContract",
    "ExpiredCountContract",
    "FireStoreContract",
    "ManualClock",
    "OrphanContract",
    "OwnerRowsContract",
    "Played",
    "RecordStoreContract",
    "ScheduleIndexContract",
    "ScheduleStoreContract",
    "SendStoreContract",
    "StoreContract",
    "StreamContract",
    "TableContract",
    "play",
]
