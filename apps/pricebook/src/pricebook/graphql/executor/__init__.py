"""Runs queries: each validated query becomes one Python function, and whatever that cannot do goes to graphql-core.

`plan.py` collects the fields of an operation, `code.py` writes the function, `executor.py` runs it, and `reference.py` runs
graphql-core with what the root fields have returned already, so that nothing is read twice.
"""
