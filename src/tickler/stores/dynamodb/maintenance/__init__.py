"""Operators' tools for a DynamoDB table: templates, resharding, copies, and checks."""
