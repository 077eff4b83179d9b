"""Break the code on purpose, one way at a time, and see the test that is there for it fail: `make mutants`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

ROOT = Path(__file__).parent.parent
PATIENCE_S = 120

INDEX = "tests/conformance/test_{store}.py::TestIndex::"
NOTHING_LEFT = INDEX + "test_a_second_claim_at_the_same_now_gets_nothing"
GIVEN_NOW = INDEX + "test_the_advance_is_from_the_now_that_was_given_not_from_a_wall_clock"
VERY_INSTANT = INDEX + "test_a_row_is_due_at_its_very_instant_and_not_before"
BAD_ROWS = INDEX + "test_more_bad_rows_than_the_limit_block_nothing"
MIRROR = "tests/stores/test_{store}.py::test_a_write_whose_mirror_fails_changes_nothing"

WALL_CLOCK = "__import__('time').time_ns() // 1_000_000"


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    test: str


def of_store(store: str, name: str, old: str, new: str, test: str, module: str = "index") -> Mutant:
    return Mutant(f"{store}: {name}", f"stores/{store}/{module}.py", old, new, test.format(store=store))


MUTANTS = [
    of_store("memory", "skip the advance", "self._tables.index[moved].next_fire_at = next_fire_at", "pass", NOTHING_LEFT),
    of_store("sqlite", "skip the advance", "connection.executemany(ADVANCE", "_ = (ADVANCE", NOTHING_LEFT),
    of_store("postgres", "skip the advance", "if result.moved:", "if False:", NOTHING_LEFT),
    of_store(
        "sqlite", "DEFERRED for IMMEDIATE", '"BEGIN IMMEDIATE"', '"BEGIN DEFERRED"',
        "tests/stores/test_sqlite.py::test_a_claim_waits_for_a_writer_and_then_sees_what_it_wrote", "turns",
    ),
    of_store(
        "sqlite", "keep half of what failed", 'connection.execute("ROLLBACK TO turn")', "pass",
        "tests/stores/test_sqlite_turns.py::test_one_that_fails_is_undone_alone", "turns",
    ),
    of_store(
        "sqlite", "commit what nobody waits for", "if call.writes and call.future.cancelled():", "if False:",
        "tests/stores/test_sqlite_turns.py::test_one_whose_caller_goes_while_it_is_written_is_undone", "turns",
    ),
    of_store(
        "postgres", "wait together for one that is held", "await connection.execute(_IMPATIENT)", "pass",
        "tests/stores/test_postgres_gathering.py::test_a_schedule_that_somebody_holds_does_not_hold_up_the_others", "schedules",
    ),
    of_store(
        "postgres", "go on for nobody", "            settling.cancel()", "            pass",
        "tests/stores/test_postgres_gathering.py::test_a_put_that_was_given_up_is_undone_and_its_connection_is_free_again",
        "gathering",
    ),
    of_store(
        "postgres", "change one schedule twice at once", "key in keys or", "",
        "tests/stores/test_postgres_gathering.py::test_what_has_to_be_apart_is_asked_one_after_the_other", "gathering",
    ),
    of_store(
        "postgres", "no row lock", "        FOR UPDATE SKIP LOCKED\n    )", "    )",
        "tests/stores/test_postgres.py::test_a_claim_holds_its_rows_until_it_has_advanced_them",
    ),
    of_store(
        "postgres", "wait for locked rows", "        FOR UPDATE SKIP LOCKED\n    )", "        FOR UPDATE\n    )",
        "tests/stores/test_postgres.py::test_a_row_locked_by_another_claimer_is_skipped_not_waited_for",
    ),
    of_store(
        "sqlite", "mirror outside the transaction", "    rows.leave(connection, [*removed",
        "    connection.execute('COMMIT'); connection.execute('BEGIN')\n    rows.leave(connection, [*removed",
        MIRROR, "schedules",
    ),
    of_store(
        "postgres", "mirror outside the transaction", "        await rows.leave(connection, self._database, [*removed",
        "        await connection.execute('COMMIT; BEGIN')\n        await rows.leave(connection, self._database, [*removed",
        MIRROR, "schedules",
    ),
    *(
        Mutant(f"{store}: advance from the wall clock", "advance.py", "return when, when.next_after(now_ms)",
               f"return when, when.next_after({WALL_CLOCK})", GIVEN_NOW.format(store=store))
        for store in ("memory", "sqlite", "postgres", "dynamodb")
    ),
    of_store("memory", "leave the bad row in place", "for problem in problems:", "for problem in problems[:0]:", BAD_ROWS),
    *(
        of_store(store, "leave the bad row in place", "result = advance(due, now_ms)",
                 "result = advance(due, now_ms); result.problems.clear()", BAD_ROWS)
        for store in ("sqlite", "postgres")
    ),
    of_store(
        "memory", "read the clock inside the store", "        due = [id for id, entry in index.items()",
        f"        now_ms = {WALL_CLOCK}\n        due = [id for id, entry in index.items()", VERY_INSTANT,
    ),
    *(
        of_store(store, "read the clock inside the store", "        claimed: list[IndexRow] = []\n",
                 f"        claimed: list[IndexRow] = []\n        now_ms = {WALL_CLOCK}\n", VERY_INSTANT)
        for store in ("sqlite", "postgres")
    ),
    of_store(
        "dynamodb", "skip the advance", "return self.to(row, self._moved_to[sort])", "return self.to(row, row.next_fire_at)",
        NOTHING_LEFT, "steps",
    ),
    of_store(
        "dynamodb", "no condition on next_fire_at", '"next_fire_at": number(next_fire_at), "revision"', '"revision"',
        "tests/stores/test_dynamodb.py::test_a_row_seen_in_a_stale_index_is_not_claimed_again", "steps",
    ),
    of_store(
        "dynamodb", "no condition on the revision", 'number(next_fire_at), "revision": text(revision)}', "number(next_fire_at)}",
        "tests/stores/test_dynamodb.py::test_a_schedule_changed_behind_a_stale_index_is_not_advanced_by_its_old_self", "steps",
    ),
    of_store(
        "dynamodb", "take a repeated claim for a lost one", "return outcome.done or (", "return outcome.done and (",
        "tests/stores/test_dynamodb.py::test_no_fault_on_the_way_loses_or_repeats_a_claim", "steps",
    ),
    of_store(
        "dynamodb", "leave the bad row in place", "result = advance(due, now_ms)",
        "result = advance(due, now_ms); due = [row for row in due if row not in [problem.row for problem in result.problems]]",
        BAD_ROWS, "claim",
    ),
    of_store(
        "dynamodb", "read the clock inside the store", "        reader = DueReader(self._table.label)\n",
        f"        reader = DueReader(self._table.label)\n        now_ms = {WALL_CLOCK}\n", VERY_INSTANT, "claim",
    ),
    of_store(
        "dynamodb", "open a second fire over the first", 'condition["fire_nominal"] = None', "pass",
        "tests/stores/test_dynamodb_fires.py::test_a_fire_lies_on_the_head_and_others_of_its_schedule_beside_it", "fire_claim",
    ),
    Mutant("lease again at most once", "leasing.py", 'if schedule.policy.delivery == "at-most-once":', "if False:",
           "tests/conformance/test_memory.py::TestFires"),
    Mutant("never say that a lease expired", "leasing.py", "if fire.worker is not None:", "if False:",
           "tests/conformance/test_memory.py::TestFires"),
    Mutant("forget the last instant when late", "occurrences.py", 'return Occurrences([last_at], _skipped("missed"',
           'return Occurrences([nominal_at], _skipped("missed"', "tests/conformance/test_memory.py::TestFires"),
    Mutant("skip silently", "owed.py", "for skip in occurrences.skips:", "for skip in occurrences.skips[:0]:",
           "tests/conformance/test_memory.py::TestFires"),
    of_store("sqlite", "settle what is another's", "AND worker = ? AND attempt = ?", "AND (worker = ? OR attempt = ? OR true)",
             "tests/conformance/test_sqlite.py::TestFires", "fires"),
    of_store("postgres", "settle what is another's", "AND f.worker = lease.worker AND f.attempt = lease.attempt", "",
             "tests/conformance/test_postgres.py::TestFires", "fires"),
    of_store("postgres", "let wait for what is being settled", "ORDER BY f.owner, f.key, f.id FOR SHARE OF f", "",
             "tests/conformance/test_postgres.py::TestFires::test_a_wake_beside_a_claim_leaves_nobody_waiting_for_nothing",
             "fires"),
    Mutant("let those that hang take every slot", "deliver/options.py", "min(total // 5, max(total - self.per_owner, 0))", "0",
           "tests/deliver/test_runner.py::test_an_idle_owners_fire_starts_within_a_second_while_ten_others_hang"),
    Mutant("reserve nothing at hosts", "deliver/queue.py", "per_host = self._per_host if idle else self._shared_per_host",
           "per_host = self._per_host",
           "tests/deliver/test_queue.py::test_an_owner_with_nothing_in_flight_starts_at_once_while_ten_others_hang"),
    Mutant("leave the leases of a busy loop to end", "deliver/runner.py", "LeaseKeeper(reopen, clock", "LeaseKeeper(None, clock",
           "tests/deliver/test_lease_keeper.py::test_a_handler_that_blocks_the_event_loop_for_longer_than_a_lease_keeps_its_fires"),
    Mutant("keep the dead waiting", "deliver/options.py", "timedelta = timedelta(seconds=10)  # how long after",
           "timedelta = timedelta(seconds=60)  # how long after",
           "tests/deliver/test_runner.py::test_what_a_killed_worker_had_is_taken_over_within_15_seconds"),
    Mutant("take over as soon as the store is back", "deliver/runner.py", "                self._steady.doubt()\n", "",
           "tests/deliver/test_runner.py::"
           "test_a_store_that_was_away_for_longer_than_a_lease_makes_nobody_take_over_from_the_living"),
    Mutant("begin what another has taken over", "deliver/runner.py", "if claim.fire is None or claim.fire.id not in lost", "",
           "tests/deliver/test_runner.py::test_a_claim_that_is_answered_after_its_lease_is_left_to_who_has_taken_it_over"),
    of_store("postgres", "wait for a lease that is locked", "            FOR UPDATE OF held SKIP LOCKED\n", "",
             "tests/stores/test_postgres.py::"
             "test_a_fire_that_somebody_has_locked_holds_up_no_other_lease_and_is_not_lost", "fires"),
    Mutant("connect to what was not checked", "deliver/guard.py", "for network, what in _NOT_PUBLIC:", "for network, what in ():",
           "tests/deliver/test_guard.py"),
]  # fmt: skip


def survives(mutant: Mutant) -> bool:
    """Whether its test passes all the same."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder, "src"))
        file = Path(folder, "src", "tickler", mutant.file)
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            raise SystemExit(
                f"{mutant.name}: {mutant.old!r} stands {text.count(mutant.old)} times in {mutant.file}: mend the mutant"
            )
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutant.test]
        environment = {**os.environ, "PYTHONPATH": str(Path(folder, "src"))}
        try:
            finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            return False
        if finished.returncode not in (0, 1):
            raise SystemExit(f"{mutant.name}: the test did not run:\n{finished.stdout}\n{finished.stderr}")
        return finished.returncode == 0


def main() -> int:
    console = Console()
    alive = 0
    for mutant in MUTANTS:
        survived = survives(mutant)
        alive += survived
        verdict = "[red]SURVIVED[/]" if survived else "[green]caught[/]"
        console.print(f"{verdict}  {mutant.name}  [dim]{mutant.test.rpartition('::')[2]}")
    console.print(f"{len(MUTANTS) - alive} passed, {alive} failed")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
