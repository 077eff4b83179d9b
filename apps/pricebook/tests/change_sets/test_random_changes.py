"""Random histories of change sets against an oracle that works in another way."""

from __future__ import annotations

from collections import Counter
from random import Random

from change_desk import ChangeDesk
from change_history import History

STEPS = 30


async def test_prices_are_those_of_the_oracle_after_random_decisions(desk: ChangeDesk, soak: bool, seed: int) -> None:
    wrong: list[str] = []
    done: Counter[str] = Counter()
    for number in range(150 if soak else 8):
        history = History(desk, Random(f"{seed} {number}"), f"history{number}")
        await history.run(STEPS)
        await history.look_ahead()
        wrong += history.wrong
        done.update(history.done)
    assert wrong == []
    assert min(done[name] for name in ("approve", "withdraw", "roll_back", "settle")) > 5
