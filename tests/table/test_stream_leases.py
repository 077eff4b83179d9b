"""The pure parts of a consumer: which shards a process holds, how far a shard is delivered, and what options it takes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickler.errors import InvalidInput
from tickler.table.engines.change_log import ChangeRecord, Shard, ShardRead
from tickler.table.streams.leases import ShardState, plan_leases, readable
from tickler.table.streams.options import ConsumerOptions
from tickler.table.streams.shard_lease import ShardLease

NOW_MS = 1_000_000
LEASE_MS = 30_000

shard_lists = st.integers(0, 20).map(lambda number: [str(n) for n in range(number)])
member_lists = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True)


def held(by: str | None, until_ms: int = NOW_MS + LEASE_MS) -> ShardState:
    return ShardState(holder=by, lease_until_ms=until_ms)


def plan_round(shards: list[str], states: dict[str, ShardState], members: list[str]) -> bool:
    """Let each process plan and do it, one after the other. Returns whether anything changed."""
    changed = False
    for me in members:
        plan = plan_leases(shards, states, me, members, NOW_MS)
        assert not [shard for shard in plan.take if shard in states and states[shard].is_held(NOW_MS)], "a held shard was taken"
        assert all(states[shard].holder == me for shard in plan.give_up), "a shard of another process was given up"
        states |= {shard: held(me) for shard in plan.take} | {shard: held(None) for shard in plan.give_up}
        changed = changed or bool(plan.take or plan.give_up)
    return changed


class TestPlanLeases:
    @given(shard_lists, member_lists, st.data())
    def test_processes_get_even_shares_and_then_nothing_changes(
        self, shards: list[str], members: list[str], data: st.DataObject
    ) -> None:
        holders = data.draw(st.lists(st.sampled_from([*members, None]), min_size=len(shards), max_size=len(shards)))
        states = {shard: held(holder) for shard, holder in zip(shards, holders, strict=True)}
        rounds = 0
        while plan_round(shards, states, members):
            rounds += 1
            assert rounds < 4, "shards go to and fro"
        shares = [sum(state.holder == member for state in states.values()) for member in members]
        assert sum(shares) == len(shards)
        assert max(shares) - min(shares) <= 1

    @given(shard_lists, member_lists)
    def test_a_process_that_joins_moves_no_more_shards_than_needed(self, shards: list[str], members: list[str]) -> None:
        states: dict[str, ShardState] = {}
        while plan_round(shards, states, members):
            pass
        before = {shard: state.holder for shard, state in states.items()}
        joined = [*members, "new"]
        while plan_round(shards, states, joined):
            pass
        moved = [shard for shard, state in states.items() if state.holder != before[shard]]
        assert len(moved) <= -(-len(shards) // len(joined)) + len(members)

    def test_a_shard_whose_lease_has_expired_is_free(self) -> None:
        states = {"0": held("dead", NOW_MS), "1": held("alive", NOW_MS + 1)}
        assert plan_leases(["0", "1"], states, "me", ["alive"], NOW_MS).take == ["0"]

    def test_a_lease_of_its_own_that_has_expired_is_taken_again(self) -> None:
        assert plan_leases(["0"], {"0": held("me", NOW_MS)}, "me", ["me"], NOW_MS) == (["0"], [])

    def test_a_process_that_is_no_member_yet_counts_itself(self) -> None:
        plan = plan_leases([str(n) for n in range(8)], {}, "me", ["other"], NOW_MS)
        assert len(plan.take) == 4

    def test_without_shards_there_is_nothing_to_do(self) -> None:
        assert plan_leases([], {}, "me", ["me"], NOW_MS) == ([], [])


class TestReadable:
    def test_a_child_is_read_once_all_of_its_parents_have_ended(self) -> None:
        shards = [Shard("a"), Shard("b"), Shard("c", ("a", "b"))]
        ended = ShardState(ended=True)
        assert readable(shards, {}) == ["a", "b"]
        assert readable(shards, {"a": ended}) == ["b"]
        assert readable(shards, {"a": ended, "b": ended}) == ["c"]
        assert readable(shards, {"a": ended, "b": ended, "c": ended}) == []

    def test_a_shard_that_is_not_listed_any_more_is_read_until_it_says_that_it_ended(self) -> None:
        shards = [Shard("child", ("gone",))]
        assert readable(shards, {"gone": ShardState("7")}) == ["gone"]
        assert readable(shards, {"gone": ShardState("7", ended=True)}) == ["child"]


def record(number: int) -> ChangeRecord:
    return ChangeRecord("0", str(number), 0, "Task", "p", "s", None, b"")


def read_of(number: int, **more: Any) -> ShardRead:
    return ShardRead("0", [record(n) for n in range(1, number + 1)], str(number + 100), **more)


class TestShardLease:
    @given(st.integers(1, 12).flatmap(lambda number: st.tuples(st.just(number), st.permutations(range(number)))))
    def test_the_position_is_behind_the_last_record_before_which_none_is_missing(self, drawn: tuple[int, list[int]]) -> None:
        number, order = drawn
        lease = ShardLease(ShardState("0", holder="me"), 0.0)
        lease.begin(read := read_of(number), NOW_MS)
        done: set[int] = set()
        for each in order:
            lease.done(each)
            done.add(each)
            prefix = next(n for n in range(number + 1) if n not in done)
            assert lease.position == str(prefix)
            assert lease.is_unsaved == (prefix > 0)
        lease.end(read)
        assert lease.position == read.position

    def test_a_read_that_was_not_delivered_to_its_end_is_read_again_from_the_gap(self) -> None:
        lease = ShardLease(ShardState("0", holder="me"), 0.0)
        lease.begin(read := read_of(3, ended=True), NOW_MS)
        lease.done(0)
        lease.done(2)
        lease.end(read)
        assert lease.position == "1"
        assert lease.is_free
        assert not lease.next_state(0, NOW_MS).ended

    def test_a_shard_that_has_ended_is_held_by_nobody(self) -> None:
        lease = ShardLease(ShardState("0", holder="me"), 0.0)
        lease.begin(read := read_of(1, ended=True), NOW_MS)
        lease.done(0)
        lease.end(read)
        state = lease.next_state(NOW_MS + LEASE_MS, NOW_MS)
        assert (state.ended, state.holder, state.lease_until_ms, lease.is_free) == (True, None, 0, False)

    async def test_a_shard_is_given_up_only_after_its_deliveries(self) -> None:
        lease = ShardLease(ShardState("0", holder="me"), 0.0)
        lease.is_leaving = True
        lease.task = asyncio.create_task(asyncio.sleep(0))
        assert lease.next_state(NOW_MS + LEASE_MS, NOW_MS).holder == "me"
        await lease.task
        lease.task = None
        assert lease.next_state(NOW_MS + LEASE_MS, NOW_MS).holder is None

    def test_what_was_lost_is_saved_with_its_time(self) -> None:
        lease = ShardLease(ShardState("0", holder="me", lost_at_ms=5), 0.0)
        assert lease.next_state(0, NOW_MS).lost_at_ms == 5
        lease.begin(read_of(0, lost=True), NOW_MS)
        assert lease.is_unsaved
        assert lease.next_state(0, NOW_MS + 1).lost_at_ms == NOW_MS

    def test_a_lease_is_valid_until_its_end(self) -> None:
        lease = ShardLease(ShardState(), 10.0)
        assert (lease.is_valid(9.9), lease.is_valid(10.0)) == (True, False)


class TestOptions:
    @pytest.mark.parametrize("name", ["", "a/b", "ä", "a b", "x" * 65, "a\n"])
    def test_a_name_that_cannot_be_part_of_a_key_is_refused(self, name: str) -> None:
        with pytest.raises(InvalidInput, match="use letters, digits"):
            ConsumerOptions(name=name)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"start": "newest"}, "use 'oldest' or 'now'"),
            ({"concurrency": 0}, "concurrency is 0: use 1 or more"),
            ({"attempts": 0}, "attempts is 0: use 1 or more"),
            ({"max_parked": -1}, "max_parked is -1: use 0 or more"),
            ({"timeout": timedelta(0)}, "timeout is 0:00:00: use at least 0:00:00.001000"),
            ({"lease": timedelta(seconds=-1)}, "use at least 0:00:00.100000"),
            ({"lease": timedelta(milliseconds=99)}, "lease is 0:00:00.099000: use at least 0:00:00.100000"),
        ],
    )
    def test_options_that_make_no_sense_are_refused_with_the_remedy(self, options: dict[str, Any], said: str) -> None:
        with pytest.raises(InvalidInput, match=said):
            ConsumerOptions(name="it", **options)

    def test_a_lease_is_counted_in_milliseconds(self) -> None:
        assert ConsumerOptions(name="it", lease=timedelta(seconds=1.5)).lease_ms == 1500
