"""Prices in the schema: their types, and what can be asked about them."""
