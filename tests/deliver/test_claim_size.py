"""The number of fires that a claim asks for."""

from __future__ import annotations

from tickler.deliver.claim_size import ClaimSize

SLOTS, MOST = 100, 500


def test_claims_that_bring_only_what_is_owed_grow_as_long_as_they_are_full() -> None:
    size = ClaimSize(SLOTS, MOST)
    asked = []
    for _ in range(4):
        asked.append(size.next(0, 0, 0, 0.0))
        size.claimed(asked[-1], asked[-1], 0)
    assert asked == [100, 200, 400, 500]
    size.claimed(500, 3, 0)
    assert size.next(0, 0, 0, 0.0) == 500, "one that is not full changes nothing"
    size.idle()
    assert size.next(0, 0, 0, 0.0) == 100


def test_what_is_delivered_at_most_once_is_claimed_for_free_slots_alone_while_nothing_ends() -> None:
    size = ClaimSize(SLOTS, MOST)
    size.claimed(100, 100, 1)
    assert size.next(free=40, waiting=0, ended=0, now_s=0.0) == 40
    assert size.next(free=40, waiting=15, ended=0, now_s=0.1) == 25
    assert size.next(free=40, waiting=30, ended=0, now_s=0.2) == 0, "not worth a claim"
    assert size.next(free=0, waiting=0, ended=0, now_s=0.3) == 0


def test_a_lease_that_brings_what_is_delivered_at_most_once_counts_like_a_claim_that_does() -> None:
    size = ClaimSize(SLOTS, MOST)
    size.claimed(100, 100, 0)
    size.leased(1)
    size.claimed(100, 100, 0)
    assert size.next(free=40, waiting=0, ended=0, now_s=0.0) == 40
    size.leased(0)
    assert size.next(free=40, waiting=0, ended=0, now_s=0.1) == SLOTS
    size.leased(1)
    size.idle()
    assert size.next(free=40, waiting=0, ended=0, now_s=0.2) == SLOTS


def test_as_many_more_as_end_within_half_a_second_are_claimed_ahead() -> None:
    size = ClaimSize(SLOTS, MOST)
    size.claimed(100, 100, 100)
    assert size.next(free=0, waiting=0, ended=0, now_s=10.0) == 0
    assert size.next(free=0, waiting=0, ended=300, now_s=10.1) == 300, "at once, so that no slot waits"
    assert size.next(free=0, waiting=0, ended=300, now_s=11.0) == 300
    assert size.next(free=0, waiting=0, ended=310, now_s=12.0) == 150, "and no longer than that"
    assert size.next(free=0, waiting=0, ended=310, now_s=12.1) == 5
    assert size.next(free=0, waiting=0, ended=9_999, now_s=12.2) == MOST
