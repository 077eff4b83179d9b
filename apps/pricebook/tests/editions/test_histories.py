"""Random histories of a store against an oracle that works in another way."""

from __future__ import annotations

from random import Random

from price_history import History

STEPS = 50


def test_prices_are_those_of_the_oracle_at_every_instant_of_random_histories(soak: bool, seed: int) -> None:
    wrong: list[str] = []
    seen = settled = retracted = 0
    for number in range(100_000 if soak else 2_000):
        history = History(Random(f"{seed} {number}"))
        history.run(STEPS)
        wrong += [f"history {number}: {each}" for each in history.mistakes()]
        seen += len(history.seen)
        settled += len(history.settled)
        retracted += any(each.retracted for each in history.decisions.values())
    assert wrong == []
    assert seen > 100_000
    assert settled > 1_000
    assert retracted > 50
