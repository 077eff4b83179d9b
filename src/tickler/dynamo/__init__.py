"""The DynamoDB wire: sends, retries and counts requests. Knows nothing about schedules.

botocore finds the credentials, `aws/signature.py` signs, and aiohttp and msgspec do the rest (docs/decisions/0007). Only what
sends requests needs those packages: `codec.py` and others can be imported without the extra.
"""
