"""Small named values with compare-and-set and expiry."""

from tickler.model.record import Record
from tickler.records.contract import RecordStore
from tickler.records.records import Records

__all__ = ["Record", "RecordStore", "Records"]
