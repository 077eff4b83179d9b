"""The audit in the schema: its types, and what can be asked about it."""
