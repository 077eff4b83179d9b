"""The horizon of PostgreSQL's change log, beside a model of transactions that lock, take numbers, and end."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tickler.table.engines.postgres.horizon import MAX_PENDING, Horizon


class Database:
    """Transactions that write to a log. `open_numbers` are those of transactions that may still commit them."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.last = 0
        self.names = 0
        self.writers: dict[str, list[int]] = {}

    def step(self) -> None:
        name = self.random.choice([*self.writers, ""])
        if not name:
            self.names += 1
            self.writers[f"3/{self.names}"] = []
            return
        match self.random.choice(["take", "take", "end", "prepare"]):
            case "take" if not name.startswith("-"):
                self.last += 1
                self.writers[name].append(self.last)
            case "prepare" if not name.startswith("-"):
                self.names += 1
                renamed = self.random.choice([f"-{name}", f"-1/{self.names}"])
                self.writers[renamed] = self.writers.pop(name)
            case "end":
                del self.writers[name]

    def steps(self, number: int) -> None:
        for _ in range(number):
            self.step()

    @property
    def open_numbers(self) -> list[int]:
        return [number for numbers in self.writers.values() for number in numbers]


@given(st.randoms(use_true_random=False))
def test_no_number_up_to_the_horizon_can_still_be_committed(random: random.Random) -> None:
    database, horizon = Database(random), Horizon()
    for _ in range(60):
        database.steps(random.randrange(4))
        last = database.last
        database.steps(random.randrange(4))  # between the two halves of an observation
        horizon.observe(last, list(database.writers))
        assert horizon.settled <= horizon.last == last
        assert all(number > horizon.settled for number in database.open_numbers)
    database.writers.clear()
    horizon.observe(database.last, [])
    assert horizon.settled == database.last


def test_a_writer_that_stays_holds_back_what_was_taken_since_it_began_and_nothing_else() -> None:
    horizon = Horizon()
    horizon.observe(10, ["1/1"])
    horizon.observe(20, ["2/1", "3/1"])
    assert horizon.settled == 10
    horizon.observe(30, ["3/1", "4/1"])
    assert horizon.settled == 10
    horizon.observe(40, ["4/1"])
    assert horizon.settled == 20


def test_writers_that_follow_one_another_do_not_hold_the_horizon_back() -> None:
    horizon = Horizon()
    for n in range(10 * MAX_PENDING):
        horizon.observe(n, [f"1/{n}", f"2/{n + 1}"])
    assert horizon.settled == 10 * MAX_PENDING - 2


def test_a_writer_that_never_ends_costs_a_bounded_number_of_observations() -> None:
    horizon = Horizon()
    for n in range(10 * MAX_PENDING):
        horizon.observe(n + 1, ["1/1", f"2/{n}"])
    assert (horizon.settled, len(horizon._pending)) == (0, MAX_PENDING)
    horizon.observe(10 * MAX_PENDING + 1, ["3/1"])
    assert horizon.settled == 10 * MAX_PENDING


def test_a_prepared_transaction_is_taken_for_one_that_was_there_before() -> None:
    horizon = Horizon()
    horizon.observe(1, ["3/7"])
    horizon.observe(1, ["-1/700"])
    assert horizon.settled == 0
    horizon.observe(1, [])
    assert horizon.settled == 1


def test_a_database_that_was_set_back_is_observed_anew() -> None:
    horizon = Horizon()
    horizon.observe(9, [])
    horizon.observe(5, ["1/1"])
    assert (horizon.settled, horizon.last) == (0, 5)
    horizon.observe(6, [])
    assert horizon.settled == 6
