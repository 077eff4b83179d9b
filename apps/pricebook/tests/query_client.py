"""Asks GraphQL queries in tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from made_services import MadeServices
from pricebook.access.caller import Caller, Role
from pricebook.access.price_reader import PriceReader
from pricebook.graphql.context import RequestContext, Services
from pricebook.graphql.limits import Limits
from pricebook.graphql.schema import build_schema
from pricebook.graphql.service import Graphql, GraphqlAnswer, GraphqlRequest

SCHEMA = build_schema()


class QueryClient:
    """Asks as a caller who may read the stores that begin with one of `stores`."""

    def __init__(
        self,
        prices: PriceReader | None = None,
        *,
        roles: tuple[Role, ...] = ("read",),
        stores: tuple[str, ...] = ("",),
        now: datetime = datetime(2026, 3, 1, tzinfo=UTC),
        limits: Limits | None = None,
        services: Services | None = None,
        id: str = "tests",
    ) -> None:
        self.services: Services = MadeServices(prices) if services is None else services
        self.caller = Caller(id, frozenset(roles), stores)
        self.now = now
        self.graphql = Graphql(SCHEMA, limits)

    @property
    def slow_runs(self) -> int:
        return self.graphql.executor.slow_runs.counts.total()

    async def answer(self, query: str, variables: Mapping[str, Any] | None = None, name: str | None = None) -> GraphqlAnswer:
        context = RequestContext(self.services, self.caller, self.now)
        return await self.graphql.answer(GraphqlRequest(query, dict(variables or {}), name), context)

    async def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Return the whole answer."""
        found: dict[str, Any] = json.loads((await self.answer(query, variables)).body)
        return found

    async def data(self, query: str, **variables: Any) -> Any:
        """Return the data of an answer without errors."""
        answer = await self.ask(query, **variables)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    async def error(self, query: str, **variables: Any) -> tuple[str, str]:
        """Return the code and the message of the only error."""
        answer = await self.ask(query, **variables)
        (error,) = answer["errors"]
        return error["extensions"]["code"], error["message"]

    async def code(self, query: str, **variables: Any) -> str:
        return (await self.error(query, **variables))[0]
