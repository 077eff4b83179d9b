"""Change sets, an audit and stores made from the arguments of each read, as `made_prices.py` makes prices."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from made_prices import AT
from made_services import MadeServices
from pricebook.access.caller import Caller
from pricebook.editions.pages import Edge, NodePage, PageArgs
from pricebook.errors import InvalidCursor, NotFound
from pricebook.model import (
    AuditedPrice,
    AuditEntry,
    ChangeLine,
    ChangeProgress,
    ChangeSet,
    ChangeStore,
    Edition,
    Head,
    PriceKey,
)
from pricebook.money import Money
from tickler.table import MISSING, evolve

STATES: list[Any] = ["draft", "submitted", "approving", "approved", "withdrawing", "settled", "cancelled", "superseded"]
BROKEN: dict[type, list[Any]] = {
    str: [None, 7, ValueError("a value that is an error"), b"bytes"],
    int: [2**31, True, "7", None],
    datetime: [None, datetime(2026, 3, 15), "2026-03-15", 7],
}


class Made:
    """`broken` is how likely a value is of a wrong kind; `calls` has the name of each read."""

    def __init__(self, broken: float = 0.0, nodes: int | None = None) -> None:
        self.broken = broken
        self.nodes = nodes
        self.calls: list[str] = []

    def _begin(self, name: str, page: PageArgs, *arguments: object) -> random.Random:
        self.calls.append(name)
        page.check()
        if "forged" in (page.after, page.before):
            raise InvalidCursor("the cursor is not one of ours: begin with the first page")
        if "nobody" in arguments:
            raise NotFound(name)
        if "down" in arguments:
            raise RuntimeError("a secret of the machine")
        return random.Random(repr((name, page, arguments)))

    def _page(self, drawn: random.Random, page: PageArgs, make: Callable[[int], Any]) -> NodePage[Any]:
        number = min(page.size, drawn.choice([0, 1, 1, 2, 3]) if self.nodes is None else self.nodes)
        edges: Any = [Edge(make(n), (str(n),), lambda where: f"after {where[0]}") for n in range(number)]
        if drawn.random() < self.broken:
            edges = drawn.choice([None, tuple(edges), 5])
        return NodePage(edges, drawn.random() < 0.5, drawn.random() < 0.5, AT)

    def _value(self, drawn: random.Random, value: Any) -> Any:
        """Return a value, or now and then one of a wrong kind."""
        if drawn.random() < self.broken:
            return drawn.choice(BROKEN[type(value)])
        return value

    def _instant(self, drawn: random.Random) -> Any:
        return self._value(drawn, AT + timedelta(milliseconds=drawn.randrange(10**9)))


class MadeChangeSets(Made):
    """The reads of change sets."""

    async def get(self, caller: Caller, id: str) -> ChangeSet:
        return self._change_set(self._begin("change set", PageArgs(), id), id)

    async def get_many(self, caller: Caller, ids: Sequence[str]) -> list[ChangeSet | None]:
        self.calls.append("change sets")
        found = [(random.Random(id), id) for id in ids]
        return [self._change_set(drawn, id) if drawn.random() < 0.8 else None for drawn, id in found]

    async def progress(self, caller: Caller, id: str) -> ChangeProgress:
        drawn = self._begin("progress", PageArgs(), id)
        return ChangeProgress(change_set=id, staged=self._value(drawn, 5))

    async def open(self, caller: Caller, page: PageArgs) -> NodePage[ChangeSet]:
        drawn = self._begin("open", page)
        return self._page(drawn, page, lambda n: self._change_set(drawn, f"C{n}"))

    async def ended(self, caller: Caller, state: str, page: PageArgs) -> NodePage[ChangeSet]:
        drawn = self._begin("ended", page, state)
        return self._page(drawn, page, lambda n: self._change_set(drawn, f"C{n}"))

    async def lines(self, caller: Caller, id: str, page: PageArgs, *, store: str | None = None) -> NodePage[ChangeLine]:
        drawn = self._begin("lines", page, id, store)
        return self._page(drawn, page, lambda n: self._line(drawn, id, store or f"S{n}"))

    async def stores(self, caller: Caller, id: str, page: PageArgs) -> NodePage[ChangeStore]:
        drawn = self._begin("stores of a change set", page, id)
        return self._page(drawn, page, lambda n: self._store(drawn, id, f"S{n}"))

    async def report(self, caller: Caller, id: str) -> Any:
        drawn = self._begin("report", PageArgs(), id)
        return MadeReport(self, drawn)

    def _change_set(self, drawn: random.Random, id: str) -> ChangeSet:
        made = ChangeSet(
            id=id,
            title=self._value(drawn, "A title"),
            state=drawn.choice(STATES),
            rev=self._value(drawn, 3),
            created_by="someone",
            created_at=self._instant(drawn),
        )
        if drawn.random() < 0.5:
            made = evolve(made, day=date(2026, 3, 15), first_at=self._instant(drawn), refused="conflict", rolls_back="C9")
        return made

    def _line(self, drawn: random.Random, id: str, store: str) -> ChangeLine:
        type = drawn.choice(["Base", "Swap"])
        amount, currency = (1999, "EUR") if drawn.random() < 0.8 else (MISSING, MISSING)
        return ChangeLine(
            change_set=id,
            store=store,
            channel="ALL",
            type=type,
            product=drawn.choice(["P1", "P2"]),
            combination="MENU1" if type == "Swap" else "-",
            amount=amount,
            currency=currency,
        )

    def _store(self, drawn: random.Random, id: str, store: str) -> ChangeStore:
        state: Any = drawn.choice(["pending", "open", "staged", "sealed", "settled"])
        if drawn.random() < self.broken:
            state = drawn.choice(["unknown", None, 7])
        edition: Any = drawn.choice([MISSING, 7])
        return ChangeStore(change_set=id, store=store, state=state, edition=edition, from_at=self._instant(drawn))


class MadeReport:
    """A report with all of its parts."""

    def __init__(self, made: Made, drawn: random.Random) -> None:
        self.lines, self.stores = made._value(drawn, 5), 2
        self.added = self.removed = self.raised = self.lowered = self.unchanged = 1
        self.first_at, self.last_at = made._instant(drawn), None
        self.errors, self.warnings, self.can_approve = 1, 0, False
        key = PriceKey("1", "ALL", "Base", "P1")
        self.findings = [MadeFinding(drawn.choice([key, None]), drawn.choice(["error", "warning"]))]
        self.largest = [MadeReportLine(key, drawn.choice([0.5, -0.2, 0, float("inf") if made.broken else 1.0]))]


class MadeFinding:
    def __init__(self, key: PriceKey | None, severity: str) -> None:
        self.severity, self.code, self.message, self.key, self.other = severity, "conflict", "a conflict", key, "C7"


class MadeReportLine:
    def __init__(self, key: PriceKey, share: float) -> None:
        self.key, self.before, self.after, self.share = key, None, Money(5, "EUR"), share


class MadeAudit(Made):
    async def of_store(self, caller: Caller, store: str, page: PageArgs) -> NodePage[AuditEntry]:
        return self._entries(page, store)

    async def of_change_set(self, caller: Caller, id: str, page: PageArgs) -> NodePage[AuditEntry]:
        return self._entries(page, id)

    async def of_actor(self, caller: Caller, actor: str, page: PageArgs) -> NodePage[AuditEntry]:
        return self._entries(page, actor)

    async def of_day(self, caller: Caller, day: date, page: PageArgs) -> NodePage[AuditEntry]:
        return self._entries(page, day)

    async def of_product(self, caller: Caller, type: str, product: str, page: PageArgs) -> NodePage[AuditedPrice]:
        drawn = self._begin("prices of a product", page, type, product)
        return self._page(drawn, page, lambda n: self._price(drawn, f"S{n}", 7))

    async def prices_of(self, caller: Caller, store: str, edition: int, page: PageArgs) -> NodePage[AuditedPrice]:
        drawn = self._begin("prices of an edition", page, store, edition)
        return self._page(drawn, page, lambda n: self._price(drawn, store, edition))

    def _entries(self, page: PageArgs, *arguments: object) -> NodePage[AuditEntry]:
        drawn = self._begin("entries", page, *arguments)
        return self._page(drawn, page, lambda n: self._entry(drawn, n))

    def _entry(self, drawn: random.Random, n: int) -> AuditEntry:
        of_change = drawn.random() < 0.5
        more: dict[str, Any] = {"state_before": "draft", "state_after": "submitted", "lines": 5} if of_change else {}
        if not of_change:
            more = {
                "store": "1",
                "edition": 7,
                "after": Edition(state="open", slot=AT, opened_at=AT, from_at=self._instant(drawn)),
            }
        change_set: Any = drawn.choice([MISSING, "C1", "C2"])
        return AuditEntry(
            subject="subject",
            at=self._instant(drawn),
            id=f"E{n}",
            day=AT.date(),
            actor=self._value(drawn, "someone"),
            action="seal",
            change_set=change_set,
            **more,
        )

    def _price(self, drawn: random.Random, store: str, edition: int) -> AuditedPrice:
        currency: Any = drawn.choice(["EUR", MISSING])
        return AuditedPrice(
            store=store,
            edition=edition,
            channel="ALL",
            type="Base",
            product="P1",
            combination="-",
            at=self._instant(drawn),
            from_at=self._instant(drawn),
            actor="someone",
            change_set=drawn.choice(["", "C1"]),
            after_amount=1999,
            after_currency=currency,
        )


class MadeStores(Made):
    async def page(self, caller: Caller, page: PageArgs) -> NodePage[Head]:
        drawn = self._begin("stores", page)
        return self._page(drawn, page, lambda n: Head(store=f"S{n}", tz=self._value(drawn, "UTC"), channels={"WEB", "ALL"}))


def made_services(prices: Any, broken: float = 0.0, nodes: int | None = None) -> MadeServices:
    return MadeServices(prices, MadeChangeSets(broken, nodes), MadeAudit(broken, nodes), MadeStores(broken, nodes))
