"""Counts the queries that ran in graphql-core, and logs why: a change that makes all of them slow must not go unnoticed."""

from __future__ import annotations

import logging
from collections import Counter

INTROSPECTION = "introspection"
"""The reason of queries about the schema, which tools send and nobody has made slow."""

log = logging.getLogger("pricebook.graphql")


class SlowRuns:
    """`counts` has how many there were, by reason. The log gets the first of each reason, the second, the fourth, and so on.

    Questions about the schema are only counted.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, reason: str, query: str) -> None:
        self.counts[reason] += 1
        number = self.counts[reason]
        if reason != INTROSPECTION and number & (number - 1) == 0:
            log.warning("graphql-core ran a query (%s; %s so far): %r", reason, f"{number:,}", query[:200])
