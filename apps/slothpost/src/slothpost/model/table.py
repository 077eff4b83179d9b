"""The one table of slothpost. Entities of a product share its partition; what belongs to a user alone is in the user's."""

from __future__ import annotations

from tickler.table import Table

slothpost = Table("slothpost")
