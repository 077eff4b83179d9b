"""What pricebook keeps: one table, and the entities in it."""

from pricebook.model.audit import AuditedPrice, AuditEntry
from pricebook.model.bulk_job import (
    BulkActor,
    BulkChunk,
    BulkCounts,
    BulkDigests,
    BulkFailure,
    BulkFormat,
    BulkJob,
    BulkOptions,
    BulkUpload,
)
from pricebook.model.change_set import (
    NO_COMBINATION,
    ChangeLine,
    ChangeProgress,
    ChangeSet,
    ChangeSetState,
    ChangeStore,
    ChangeStoreState,
    Decision,
)
from pricebook.model.head import Edition, EditionState, Head, Store, UnsettledEdition
from pricebook.model.notice import Notice, NoticeKind
from pricebook.model.past import Past, PastCombinationPrice, PastPrice, past_of
from pricebook.model.price import (
    ALL,
    PRICE_TYPES,
    CombinationPrice,
    Price,
    PriceKey,
    PriceRow,
    Value,
    has_combination,
    key_of,
    row_id,
)
from pricebook.model.setting import Setting
from pricebook.model.table import pricebook

__all__ = [
    "ALL",
    "NO_COMBINATION",
    "PRICE_TYPES",
    "AuditEntry",
    "AuditedPrice",
    "BulkActor",
    "BulkChunk",
    "BulkCounts",
    "BulkDigests",
    "BulkFailure",
    "BulkFormat",
    "BulkJob",
    "BulkOptions",
    "BulkUpload",
    "ChangeLine",
    "ChangeProgress",
    "ChangeSet",
    "ChangeSetState",
    "ChangeStore",
    "ChangeStoreState",
    "CombinationPrice",
    "Decision",
    "Edition",
    "EditionState",
    "Head",
    "Notice",
    "NoticeKind",
    "Past",
    "PastCombinationPrice",
    "PastPrice",
    "Price",
    "PriceKey",
    "PriceRow",
    "Setting",
    "Store",
    "UnsettledEdition",
    "Value",
    "has_combination",
    "key_of",
    "past_of",
    "pricebook",
    "row_id",
]
