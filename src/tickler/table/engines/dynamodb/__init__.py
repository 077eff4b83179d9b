"""The engine on DynamoDB. `items.py` documents how items are stored."""
