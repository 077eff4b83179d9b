"""Fires and their history in DynamoDB. `layout.py` shows how they are stored."""
