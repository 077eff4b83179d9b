"""The engine on DynamoDB. `items.py` documents how items are stored."""

from tickler.table.engines.dynamodb.engine import DynamodbEngine

__all__ = ["DynamodbEngine"]
