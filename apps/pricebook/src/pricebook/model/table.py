"""The one table of pricebook. A store's prices and its head share a partition; what is past has one of its own."""

from __future__ import annotations

from tickler.table import Table

pricebook = Table("pricebook", stream=True)
