"""Prices over GraphQL: schema, limits, and an executor that compiles each query to a function.

`service.py` answers a request: `documents.py` parses and validates, `limits/` refuses what costs too much, `executor/` runs it.
"""
