"""The leases that are extended, and when."""

from __future__ import annotations

from msgspec.structs import replace

from tickler.deliver.held_leases import HeldLeases
from tickler.model.fire import Extension, Fire

NOW_MS = 1_921_406_400_000
LEASE_MS = 9_000


def fire(id: str, ends_in_ms: int, attempt: int = 1) -> Fire:
    return Fire(
        id=id,
        owner="u1",
        key=id,
        nominal_at=NOW_MS,
        opened_at=NOW_MS,
        attempt=attempt,
        deliver_after=NOW_MS + ends_in_ms,
        worker="w",
    )


def test_a_lease_is_extended_when_a_third_of_it_is_over_and_not_before() -> None:
    leases = HeldLeases(LEASE_MS, 0)
    fires = [fire("new", LEASE_MS), fire("young", 6_001), fire("old", 6_000), fire("ended", -1)]
    assert [each.id for each in leases.due(fires, NOW_MS)] == ["ended", "old"], "the first to end first"


def test_what_was_extended_is_due_a_third_of_a_lease_later() -> None:
    leases = HeldLeases(LEASE_MS, 0)
    held = [fire("a", 0)]
    leases.extended(held, leases.until(NOW_MS), Extension([]))
    assert leases.due(held, NOW_MS + 2_999) == []
    assert leases.due(held, NOW_MS + 3_000) == held


def test_what_could_not_be_extended_stays_due() -> None:
    leases = HeldLeases(LEASE_MS, 0)
    held = [fire("a", 0)]
    assert leases.due(held, NOW_MS) == held
    assert leases.due(held, NOW_MS + 1) == held


def test_what_another_has_is_not_extended_again_until_this_worker_has_it_again() -> None:
    leases = HeldLeases(LEASE_MS, 0)
    held = [fire("a", 0)]
    leases.extended(held, leases.until(NOW_MS), Extension(held))
    assert leases.due(held, NOW_MS + 60_000) == []
    assert leases.due([fire("a", 0, attempt=3)], NOW_MS) == [fire("a", 0, attempt=3)]


def test_a_lease_that_lasts_too_long_after_the_clock_was_set_back_is_shortened() -> None:
    leases = HeldLeases(LEASE_MS, 0)
    held = [fire("a", LEASE_MS)]
    looks = [leases.due(held, NOW_MS - 5_000) for _ in range(4)]
    assert looks == [[], [], [], held], "when everybody has had time to notice"
    assert leases.until(NOW_MS - 5_000) == NOW_MS + 4_000


def test_a_clock_that_is_set_there_and_back_shortens_nothing() -> None:
    leases = HeldLeases(LEASE_MS, 0)
    held = [fire("a", LEASE_MS)]
    for _ in range(10):
        assert [leases.due(held, NOW_MS + by_ms) for by_ms in (-60_000, -60_000, 0)] == [[], [], []]


def test_what_is_claimed_ahead_lasts_until_a_lease_after_its_instant() -> None:
    leases = HeldLeases(LEASE_MS, 2_000)
    assert leases.until(NOW_MS) == NOW_MS + 11_000
    assert [each.id for each in leases.due([fire("a", 8_001), fire("b", 8_000)], NOW_MS)] == ["b"]


def test_what_is_not_held_any_more_is_forgotten() -> None:
    leases = HeldLeases(LEASE_MS, 0)
    held = [fire("a", 0), fire("b", 0)]
    leases.extended(held, leases.until(NOW_MS), Extension(held[1:]))
    assert leases.due([], NOW_MS) == []
    assert leases.due(held, NOW_MS + 1_000) == held


def test_what_another_had_is_extended_again_when_this_worker_leases_it_for_the_same_attempt() -> None:
    leases = HeldLeases(LEASE_MS, 0)
    held = [fire("a", 0)]
    leases.extended(held, leases.until(NOW_MS), Extension(held))
    again = [replace(held[0], lease_token=NOW_MS + 1)]
    assert leases.due([*held, *again], NOW_MS + 1) == again


def test_a_lease_whose_fire_was_locked_is_tried_again_soon_and_not_before_a_third_of_a_lease_like_the_others() -> None:
    leases = HeldLeases(LEASE_MS, 0)
    held = [fire("locked", 0), fire("extended", 0)]
    leases.extended(held, leases.until(NOW_MS), Extension([], held[:1]))
    assert leases.due(held, NOW_MS) == [], "not at once: whoever asks would ask without end"
    assert leases.due(held, NOW_MS + 200) == held[:1]
    assert leases.due(held, NOW_MS + 3_000) == held


def test_a_clock_that_is_set_back_puts_off_no_lease_whose_fire_was_locked() -> None:
    leases = HeldLeases(LEASE_MS, 0)
    held = [fire("locked", 0)]
    leases.extended(held, leases.until(NOW_MS), Extension([], held))
    assert leases.due(held, NOW_MS - 6_000) == held
