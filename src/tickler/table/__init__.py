"""The single-table toolkit: entities, sparse and overloaded indexes, on SQLite, PostgreSQL, DynamoDB and in memory."""

from tickler.database.progress import progress_bar
from tickler.table.attribute import Attr, Path, attr
from tickler.table.change import Change
from tickler.table.condition import Condition
from tickler.table.declaration import MISSING, Missing
from tickler.table.entity import Entity, Part, evolve
from tickler.table.key import Index, ItemId, Key
from tickler.table.open_table import OpenTable
from tickler.table.page import Page
from tickler.table.streams.consumer import Consumer
from tickler.table.streams.events import changed, created, entered, left, removed
from tickler.table.streams.item_change import ItemChange
from tickler.table.table import Table
from tickler.table.transaction import Transaction

__all__ = [
    "MISSING",
    "Attr",
    "Change",
    "Condition",
    "Consumer",
    "Entity",
    "Index",
    "ItemChange",
    "ItemId",
    "Key",
    "Missing",
    "OpenTable",
    "Page",
    "Part",
    "Path",
    "Table",
    "Transaction",
    "attr",
    "changed",
    "created",
    "entered",
    "evolve",
    "left",
    "progress_bar",
    "removed",
]
