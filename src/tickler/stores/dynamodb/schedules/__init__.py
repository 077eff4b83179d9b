"""Schedules in DynamoDB."""
