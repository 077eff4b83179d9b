"""The DynamoDB wire: sends, retries and counts requests. Knows nothing about schedules.

botocore finds the credentials, `aws/signature.py` signs, and aiohttp and msgspec do the rest (docs/decisions/0007).
"""

from tickler.aws.address import Address
from tickler.dynamo.batches import Outcome, execute_many, get_many, write_many
from tickler.dynamo.client import Client
from tickler.dynamo.codec import Item, from_item, to_item
from tickler.dynamo.failures import ConditionFailed, RequestRefused, TransactionCancelled
from tickler.dynamo.statements import Condition, Statement

__all__ = [
    "Address",
    "Client",
    "Condition",
    "ConditionFailed",
    "Item",
    "Outcome",
    "RequestRefused",
    "Statement",
    "TransactionCancelled",
    "execute_many",
    "from_item",
    "get_many",
    "to_item",
    "write_many",
]
