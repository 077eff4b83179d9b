"""Which product has a Vercel project: found through the sparse index of connected projects, and confirmed."""

from __future__ import annotations

from slothpost.model import Connection, Product, VercelClaim
from tickler.table import MISSING, OpenTable


class VercelRouting:
    """Finds the connection that a deployment belongs to. It never goes by names, which change, and which others may take."""

    def __init__(self, db: OpenTable) -> None:
        self._db = db

    async def find(self, project: str, owner: str | None) -> Connection | None:
        """Return the connection of the product that has a project; None if none has, or if the project was another owner's then.

        An index may be late: a product in it may have given the project away, and one that just claimed it may not be there yet.
        So its connection is read consistently, and if that does not have the project, so is the claim.
        """
        page = await self._db.query(Product.by_vercel_project(project), first=2)
        found = await self._connected([product.id for product in page.items], project)
        if found is None:
            claim = await self._db.get(VercelClaim.key.id(project))
            found = None if claim is None else await self._connected([claim.product], project)
        return found if found is not None and _may_be_of(found, owner) else None

    async def _connected(self, products: list[str], project: str) -> Connection | None:
        for product in products:
            connection = await self._db.get(Connection.key.id(product, "vercel"))
            if connection is not None and connection.external_id == project:
                return connection
        return None


def _may_be_of(connection: Connection, owner: str | None) -> bool:
    """Tell whether a project is still its claimer's.

    Vercel lets people transfer projects; their deployments are others' then. And whose installation Vercel refuses may have left
    the team: until they prove again that the project is theirs, others of the team must not tell them what they deploy.
    """
    return connection.broken is MISSING and (owner is None or not connection.owners or owner in connection.owners)
