"""Explains why a schedule fired or did not: reads the evidence, and words it (`why_wording.py`)."""

from __future__ import annotations

import msgspec

from tickler.model.schedule import Id
from tickler.observe.why_evidence import Evidence, gather, without_worker_names
from tickler.observe.why_wording import Fact, sentence_and_facts
from tickler.stores.store import Store


class Why(msgspec.Struct, frozen=True):
    """One sentence, and the facts behind it, in the order in which a fire meets them."""

    owner: str
    key: str
    at: int | None  # the instant in question; None for now
    now: int
    sentence: str
    facts: list[Fact]

    def __str__(self) -> str:
        return self.sentence


async def why(store: Store, id: Id, now_ms: int, at: int | None = None, *, names_workers: bool = True) -> Why:
    """Explain a schedule at an instant, past or future, or now."""
    evidence = await gather(store, id, now_ms, at)
    return explain(evidence if names_workers else without_worker_names(evidence), at)


def explain(evidence: Evidence, at: int | None = None) -> Why:
    """Explain the evidence. Pure."""
    sentence, facts = sentence_and_facts(evidence, at)
    return Why(*evidence.id, at, evidence.now_ms, sentence, facts)
