"""Fixtures shared with the tests of the DynamoDB client."""

from dynamo.conftest import pauses, service

__all__ = ["pauses", "service"]
