"""Break the code on purpose, one way at a time, and see the test that is there for it fail: `make mutants`.

`python tests/mutants.py table/` does so with the mutants whose file or name has that text.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mutant import Mutant
from rich.console import Console
from table_mutants import TABLE_MUTANTS

ROOT = Path(__file__).parent.parent
REQUEST_TIMEOUT_S = 120

INDEX = "tests/conformance/test_{store}.py::TestIndex::"
NOTHING_LEFT = INDEX + "test_a_second_claim_at_the_same_now_gets_nothing"
GIVEN_NOW = INDEX + "test_the_advance_is_from_the_now_that_was_given_not_from_a_wall_clock"
VERY_INSTANT = INDEX + "test_a_row_is_due_at_its_very_instant_and_not_before"
BAD_ROWS = INDEX + "test_more_bad_rows_than_the_limit_block_nothing"
MIRROR = "tests/stores/test_{store}.py::test_a_write_whose_mirror_fails_changes_nothing"

CLAIM_BYTES = "tests/conformance/test_{store}.py::TestFires::test_a_claim_ends_where_its_bytes_do_and_the_next_goes_on"
SENT_MEANWHILE = "tests/conformance/test_{store}.py::TestSends::test_a_unit_of_work_conflicts_if_others_sent_the_same_meanwhile"
PUT_MEANWHILE = (
    "tests/conformance/test_{store}.py::TestRecords::test_a_unit_of_work_conflicts_with_a_record_that_others_changed_meanwhile"
)
CLOSED_MEANWHILE = (
    "tests/conformance/test_{store}.py::TestFires::test_a_unit_of_work_conflicts_if_its_fire_can_no_longer_be_opened"
)
LEASE_BYTES = "tests/conformance/test_{store}.py::TestFires::test_a_lease_ends_where_its_bytes_do_and_the_next_goes_on"

FIRES_ON_SQLITE = "tests/conformance/test_sqlite.py::TestFires::"
POSTPONED = FIRES_ON_SQLITE + "test_what_is_postponed_is_open_from_then_on_with_an_entry_and_without_the_attempt"

WALL_CLOCK = "__import__('time').time_ns() // 1_000_000"


def of_store(store: str, name: str, old: str, new: str, test: str, module: str = "index", folder: str = "stores") -> Mutant:
    return Mutant(f"{store}: {name}", f"{folder}/{store}/{module}.py", old, new, test.format(store=store))


MUTANTS = [
    *(
        Mutant(f"{store}: list what is sound among what is failing", f"stores/{module}.py", "if failing:", "if False:",
               f"tests/conformance/test_{store}.py::TestFires::"
               "test_a_schedule_is_failing_for_as_long_as_a_fire_of_its_is_dead")
        for store, module in (
            ("memory", "memory/schedules"),
            ("sqlite", "sql/schedules"),
            ("postgres", "sql/schedules"),
            ("dynamodb", "dynamodb/schedules/schedule_store"),
        )
    ),
    Mutant("guard: look up localhost before its network is checked", "deliver/address_guard.py",
           "if _LOCALHOST.fullmatch(host) and", "if False and",
           "tests/deliver/test_address_guard.py::test_a_refusal_of_an_address_inside_names_the_one_variable_that_is_needed"),
    Mutant("why: say what is dead last", "observe/why_wording.py", "    if not dead:\n        return state", "    return state",
           "tests/observe/test_why.py::"
           "test_what_was_given_up_comes_first_until_somebody_sees_to_it_also_when_others_were_delivered_since"),
    of_store("memory", "send what others sent", "if self._seen(id) != seen:", "if False:", SENT_MEANWHILE, "sends"),
    of_store("sqlite", "send what others sent", "if _seen(connection, id) != seen:", "if False:", SENT_MEANWHILE, "sends"),
    of_store("postgres", "send what others sent", "if await self._seen(connection, id) != seen:", "if False:", SENT_MEANWHILE,
             "sends"),
    of_store("dynamodb", "forget a send", "[record.write(items.record, 1), *await", "[*await",
             "tests/conformance/test_{store}.py::TestSends::test_the_same_send_again_returns_the_first_and_writes_nothing",
             "sends"),
    of_store("memory", "put a record over another", "is not seen:", "is None and seen:", PUT_MEANWHILE, "records"),
    of_store("sqlite", "put a record over another", "version(connection, found)", "pass", PUT_MEANWHILE, "records"),
    of_store("postgres", "put a record over another", "await work(connection, found)", "await work(connection, None)",
             PUT_MEANWHILE, "records"),
    of_store("sqlite", "open a fire of a schedule that has gone", "if not work(connection):", "if work(connection) is None:",
             CLOSED_MEANWHILE, "fires"),
    of_store("postgres", "open a fire of a schedule that has gone", "if not await work(connection):",
             "if await work(connection) is None:", CLOSED_MEANWHILE, "fires"),
    Mutant("sends: take other content for the same", "webhooks/content_digest.py", "return hmac.compare_digest(hashed, ",
           "return bool(hashed) or hmac.compare_digest(hashed, ",
           "tests/conformance/test_memory.py::TestSends::test_other_content_under_the_same_key_is_refused"),
    Mutant("sends: let the runner sleep", "sends/sends.py", "if sent.is_new:", "if sent is None:",
           "tests/sends/test_sends.py::test_a_send_wakes_the_runners_of_this_process"),
    of_store("memory", "skip the advance", "self._tables.index[moved].next_fire_at = next_fire_at", "pass", NOTHING_LEFT),
    of_store("sqlite", "skip the advance", "connection.execute(ADVANCE", "_ = (ADVANCE", NOTHING_LEFT),
    of_store("postgres", "skip the advance", "if result.moved:", "if False:", NOTHING_LEFT),
    of_store(
        "sqlite", "DEFERRED for IMMEDIATE", '"BEGIN IMMEDIATE"', '"BEGIN DEFERRED"',
        "tests/stores/test_sqlite.py::test_a_claim_waits_for_a_writer_and_then_sees_what_it_wrote", "write_queue", "database",
    ),
    of_store(
        "sqlite", "keep half of what failed", 'connection.execute("ROLLBACK TO turn")', "pass",
        "tests/database/test_sqlite_write_queue.py::test_one_that_fails_is_undone_alone", "write_queue", "database",
    ),
    of_store(
        "sqlite", "commit what nobody waits for",
        "if any(outcome.error is None and outcome.call.future.cancelled() for outcome in outcomes):", "if False:",
        "tests/database/test_sqlite_write_queue.py::"
        "test_one_whose_caller_goes_before_the_commit_of_all_is_undone_alone", "write_queue", "database",
    ),
    of_store(
        "sqlite", "commit into a file that was deleted", "self._files.check_before_commit()", "pass",
        "tests/database/test_sqlite_open_files.py::"
        "test_a_commit_is_refused_at_once_and_not_only_a_second_later", "write_queue", "database",
    ),
    of_store(
        "sqlite", "read from a file that was deleted", "self._files.check()", "pass",
        "tests/database/test_sqlite_open_files.py::"
        "test_nothing_is_written_or_read_once_the_file_was_deleted", "write_queue", "database",
    ),
    of_store(
        "sqlite", "give up at once on a full disk", "if not failed or not make_room(self._connection):", "if True:",
        "tests/database/test_sqlite_space.py::"
        "test_what_fails_for_want_of_room_is_tried_once_more_and_alone", "write_queue", "database",
    ),
    of_store(
        "sqlite", "let the log keep its size", "PRAGMA journal_size_limit = {wal_bytes}", "PRAGMA journal_size_limit = -1",
        "tests/database/test_sqlite_space.py::test_a_log_that_grew_shrinks_to_its_limit", "space", "database",
    ),
    Mutant("say nothing of a log that cannot shrink", "observe/doctor.py", "    backlog.storage,\n", "",
           "tests/database/test_sqlite_space.py::test_the_doctor_names_a_log_that_a_long_reader_keeps_from_shrinking"),
    of_store(
        "postgres", "wait together for one that is held", "await connection.execute(_IMPATIENT)", "pass",
        "tests/database/test_postgres_request_batcher.py::"
        "test_a_schedule_that_somebody_holds_does_not_hold_up_the_others", "schedules",
    ),
    of_store(
        "postgres", "go on for nobody", "            settling.cancel()", "            pass",
        "tests/database/test_postgres_request_batcher.py::"
        "test_a_put_that_was_given_up_is_undone_and_its_connection_is_free_again",
        "request_batcher", "database",
    ),
    of_store(
        "postgres", "change one schedule twice at once", "key in keys or", "",
        "tests/database/test_postgres_request_batcher.py::"
        "test_what_has_to_be_apart_is_asked_one_after_the_other", "request_batcher", "database",
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
        Mutant(f"{store}: advance from the wall clock", "index/advance.py", "return when, when.next_after(now_ms)",
               f"return when, when.next_after({WALL_CLOCK})", GIVEN_NOW.format(store=store))
        for store in ("memory", "sqlite", "postgres", "dynamodb")
    ),
    of_store("memory", "leave the bad row in place", "problems, result.finished = result.problems, []",
             "problems, result.finished, result.problems = result.problems, [], []", BAD_ROWS),
    *(
        of_store(store, "leave the bad row in place", "result = advance([DueRow(*row) for row in due], now_ms)",
                 "result = advance([DueRow(*row) for row in due], now_ms); result.problems.clear()", BAD_ROWS)
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
        NOTHING_LEFT, "index/claim_writes",
    ),
    of_store(
        "dynamodb", "no condition on next_fire_at", '"next_fire_at": number(next_fire_at), "revision"', '"revision"',
        "tests/stores/test_dynamodb.py::test_a_row_seen_in_a_stale_index_is_not_claimed_again", "index/claim_writes",
    ),
    of_store(
        "dynamodb", "no condition on the revision", 'number(next_fire_at), "revision": text(revision)}', "number(next_fire_at)}",
        "tests/stores/test_dynamodb.py::"
        "test_a_schedule_changed_behind_a_stale_index_is_not_advanced_by_its_old_self", "index/claim_writes",
    ),
    of_store(
        "dynamodb", "take a repeated claim for a lost one", "return outcome.done or (", "return outcome.done and (",
        "tests/stores/test_dynamodb.py::test_no_fault_on_the_way_loses_or_repeats_a_claim", "index/claim_writes",
    ),
    of_store(
        "dynamodb", "leave the bad row in place", "result = advance(due, now_ms)",
        "result = advance(due, now_ms); due = [row for row in due if row not in [problem.row for problem in result.problems]]",
        BAD_ROWS, "index/claim",
    ),
    of_store(
        "dynamodb", "read the clock inside the store", "        reader = DueReader(self._table.label)\n",
        f"        reader = DueReader(self._table.label)\n        now_ms = {WALL_CLOCK}\n", VERY_INSTANT, "index/claim",
    ),
    of_store(
        "dynamodb", "open a second fire over the first", 'condition["fire_nominal"] = None', "pass",
        "tests/stores/test_dynamodb_fires.py::test_a_fire_lies_on_the_head_and_others_of_its_schedule_beside_it", "fires/claim",
    ),
    of_store(
        "dynamodb", "claim in the wrong unit", "if reasons and 2 * len(reasons) >= len(items):", "if False:",
        "tests/stores/test_dynamodb_user_table.py::"
        "test_the_wrong_unit_is_refused_before_anything_is_written", "index/user_table_units",
    ),
    Mutant("lease again at most once", "fires/lease.py", 'if schedule.policy.delivery == "at-most-once":', "if False:",
           "tests/conformance/test_memory.py::TestFires"),
    Mutant("never say that a lease expired", "fires/lease.py", "if fire.worker is not None:", "if False:",
           "tests/conformance/test_memory.py::TestFires"),
    Mutant("forget the last instant when late", "fires/missed.py", 'return Occurrences([last_at], _skipped("missed"',
           'return Occurrences([nominal_at], _skipped("missed"', "tests/conformance/test_memory.py::TestFires"),
    Mutant("skip silently", "fires/claim.py", "for skip in occurrences.skips:", "for skip in occurrences.skips[:0]:",
           "tests/conformance/test_memory.py::TestFires"),
    *(
        Mutant(f"{store}: settle what is another's", "stores/sql/fires.py",
               " AND f.worker = {worker} AND f.attempt = {attempt}", "", f"tests/conformance/test_{store}.py::TestFires")
        for store in ("sqlite", "postgres")
    ),
    Mutant("memory: settle what is another's", "fires/settle.py",
           "return stored is not None and (stored.holder, stored.attempt) == (fire.holder, fire.attempt)",
           "return stored is not None", "tests/conformance/test_memory.py::TestFires"),
    Mutant("memory: wake the next while another is open", "fires/settle.py",
           '        if fire.state == "open":\n            return None\n',
           "", "tests/conformance/test_memory.py::TestFires"),
    of_store("postgres", "let wait for what is being settled", "ORDER BY f.owner, f.key, f.id FOR SHARE OF f", "",
             "tests/conformance/test_postgres.py::TestFires::test_a_wake_beside_a_claim_leaves_nobody_waiting_for_nothing",
             "fires"),
    Mutant("cut ranges of one down before they are validated", "when/cron.py", "    sim = _parse(expr)\n",
           '    expr = re.sub(r"\\b(\\w+)-\\1/\\d+", r"\\1", expr)\n    sim = _parse(expr)\n',
           "tests/when/test_croniter.py::test_what_croniter_refuses_is_refused"),
    Mutant("take EventBridge's weekdays for ours", "when/eventbridge.py", "frozenset(number - 1 for", "frozenset(number % 7 for",
           "tests/when/test_eventbridge.py"),
    Mutant("check the unit of what is meant", "index/index.py", "if any_instant else to_ms", "if False else to_ms",
           "tests/index/test_polling_tick.py"),
    Mutant("count no connections", "server/middleware/connection_limit.py",
           "if self._all.count >= self.limits.total and not self._evict_idle(self._all):", "if False:",
           "tests/server/test_connections.py::"
           "test_a_service_with_few_files_answers_while_more_idle_connections_knock"),
    Mutant("accept all that knock at once", "server/middleware/uvicorn_protocol.py", "backlog=limits.burst,", "backlog=2048,",
           "tests/server/test_connections.py::"
           "test_a_service_with_few_files_answers_while_more_idle_connections_knock"),
    Mutant("let the system hold few connections", "server/middleware/uvicorn_protocol.py",
           "listening.listen(QUEUED_CONNECTIONS)", "pass",
           "tests/server/test_connections.py::test_the_loop_accepts_few_at_a_time_and_the_system_holds_many"),
    Mutant("read lines of all imports in one go", "transfer/ndjson.py", "        await turns.next()\n", "",
           "tests/server/test_busy_tenants.py::test_others_are_answered_while_many_import_what_takes_long_to_read"),
    Mutant("let all imports have their turns at once", "database/pacing.py",
           "        async with self._one_at_a_time:\n            await",
           "        if True:\n            await",
           "tests/transfer/test_ndjson.py::test_one_of_many_imports_has_its_turn_at_a_time"),
    Mutant("look for the zone that was meant, line by line", "transfer/ndjson.py", "suggest=False", "suggest=True",
           "tests/transfer/test_ndjson.py::test_nobody_looks_for_the_zone_that_was_meant"),
    Mutant("look for the zone that was meant in front of cron", "when/parsing.py",
           "_check_zones(tz, None if named is None else named.zone)", "_check_zones(tz)",
           "tests/transfer/test_ndjson.py::test_nobody_looks_for_the_zone_that_was_meant"),
    Mutant("list all zones for each that is unknown", "when/zones.py", "@lru_cache(maxsize=1)\ndef _known_zones",
           "def _known_zones", "tests/when/test_zones.py"),
    Mutant("let all imports write at once", "transfer/ndjson.py", "async with pace.writing:", "if pace.writing:",
           "tests/transfer/test_ndjson.py::test_few_of_many_imports_work_out_what_to_write_at_once"),
    Mutant("accept a session that was signed by nobody", "web/sessions.py",
           "if await self._key.is_signature(parts[4], _PURPOSE, str(session)) and await",
           "if await",
           "tests/web/test_sessions.py::test_a_cookie_that_was_changed_in_any_part_is_nobodys"),
    Mutant("keep sessions that were all ended", "web/sessions.py",
           "generation is None or session.id.startswith(generation)",
           "True",
           "tests/web/test_sessions.py::test_ending_all_sessions_of_a_subject_ends_those_before_and_none_after"),
    Mutant("renew what was ended elsewhere", "web/sessions.py",
           "self._start(session.subject, session.id[:_GENERATION])",
           "self.cookie_for(session.subject)",
           "tests/web/test_sessions.py::"
           "test_a_session_that_was_ended_elsewhere_cannot_be_renewed_while_it_is_still_accepted"),
    Mutant("read the store for a forged cookie", "web/sessions.py",
           "            session = Session(unquote(parts[1])",
           "            await self._generation(parts[1], 0)\n            session = Session(unquote(parts[1])",
           "tests/web/test_sessions.py::test_a_forged_cookie_costs_no_read"),
    Mutant("give the code of a link to all who redeem it", "web/one_time_links.py",
           "if record is None or not await self._records.delete(self._kind, record.name):",
           "if record is None or (await self._records.delete(self._kind, record.name) and False):",
           "tests/web/test_one_time_links.py::test_of_many_who_redeem_a_code_at_once_one_succeeds"),
    Mutant("redeem a code for any purpose", "web/one_time_links.py",
           '"\\0".join((purpose, code))',
           "code",
           "tests/web/test_one_time_links.py::test_a_code_is_for_its_purpose_and_its_application"),
    Mutant("read forms without their token", "web/forms.py",
           "if len(tokens) != 1 or not await self.is_token(tokens[0], client_id):",
           "if False:",
           "tests/web/test_forms.py::test_tokens_of_other_sessions_and_applications_are_refused"),
    Mutant("exempt paths that only begin alike", "web/settings.py",
           ".startswith(f\"{prefix.rstrip('/')}/\")",
           ".startswith(prefix.rstrip('/'))",
           "tests/web/test_protection.py::test_another_sites_write_is_refused_but_for_declared_paths"),
    Mutant("let a session act on a foreign path", "web/application.py",
           'if self._settings.is_foreign(scope["path"]) or self', "if self",
           "tests/web/test_protection.py::test_another_sites_write_is_refused_but_for_declared_paths"),
    Mutant("let the session of a removed user come back", "web/application.py",
           "            await self.sessions.end(session)\n            return Visitor()",
           "            return Visitor()",
           "tests/web/test_protection.py::test_a_user_who_is_gone_is_nobody_and_the_session_ends"),
    Mutant("keep the session that was planted before a sign-in", "web/application.py",
           "        await self._end_session(scope)\n        return await self.sessions.cookie_for(subject)",
           "        return await self.sessions.cookie_for(subject)",
           "tests/web/test_protection.py::test_signing_in_ends_the_session_before_and_changes_its_id"),
    Mutant("believe the first address that a caller wrote", "web/addresses.py",
           "for named in reversed([",
           "for named in ([",
           "tests/web/test_parts.py::test_an_address_is_the_last_that_no_trusted_proxy_has"),
    Mutant("forget all rates at the bound of memory", "web/rate_limit.py",
           "del self._buckets[next(iter(self._buckets))]",
           "self._buckets.clear()",
           "tests/web/test_parts.py::test_a_rate_at_its_bound_of_memory_forgets_who_was_idle_longest"),
    Mutant("open websockets to other sites", "web/protection.py",
           'if scope.get("method") not in SAFE_METHODS and',
           'if scope.get("method", "GET") not in SAFE_METHODS and',
           "tests/web/test_protection.py::test_a_websocket_of_another_site_is_closed_before_it_opens"),
    Mutant("pass on what a framework makes of a long body", "web/protection.py",
           "if self.refused is None or self.started:",
           "if True:",
           "tests/web/test_protection.py::test_a_framework_that_answers_an_error_of_its_own_for_a_long_body_does_not_hide_the_reason"),
    Mutant("take many imports of one token", "server/middleware/gateway.py", "MAX_IMPORTS = 1 ", "MAX_IMPORTS = 25 ",
           "tests/server/test_busy_tenants.py::test_a_token_has_one_import_at_once"),
    Mutant("compare a payload before its length is looked at", "model/schedule_json.py",
           "    if len(encoded) > max_bytes:", "    _decode(encoded)\n    if len(encoded) > max_bytes:",
           "tests/model/test_schedule_json.py::test_a_payload_that_is_too_large_is_refused_before_it_is_compared"),
    Mutant("read long bodies while all others wait", "server/json_body.py", "if size <= LONG_BYTES:", "if True:",
           "tests/server/test_busy_tenants.py::"
           "test_long_bodies_of_one_caller_are_read_one_by_one_and_hold_up_no_other"),
    Mutant("decode payloads to say what a put removed", "schedules/removed_fields.py", "    old, new = undecoded",
           "    _ = after.payload\n    old, new = undecoded",
           "tests/server/test_busy_tenants.py::test_no_long_payload_is_decoded_encoded_or_merged_on_the_loop"),
    Mutant("merge long payloads on the loop", "schedules/payload_patch.py", "(self._patch) > LONG_BYTES", "(self._patch) > 1e9",
           "tests/server/test_busy_tenants.py::test_no_long_payload_is_decoded_encoded_or_merged_on_the_loop"),
    Mutant("encode long payloads on the loop", "model/schedule_json.py", 'values["payload"] = encoded_payload(', '_ = (',
           "tests/server/test_busy_tenants.py::test_no_long_payload_is_decoded_encoded_or_merged_on_the_loop"),
    Mutant("write a merge of what is stored no longer", "schedules/payload_patch.py", "_same(stored, self._stored)", "True",
           "tests/schedules/test_merge_patch.py::"
           "test_a_long_payload_is_merged_between_two_looks_at_the_store_and_nothing_that_came_meanwhile_is_lost"),
    Mutant("send sealed headers to another host", "schedules/merge_patch.py",
           "if before.sealed is not None and _moves(", "if False and _moves(",
           "tests/schedules/test_merge_patch.py::test_nothing_that_is_sealed_goes_to_another_host_unnamed"),
    Mutant("move a target without its sealed headers named", "schedules/merge_patch.py",
           "and name not in patch]", "and False]",
           "tests/schedules/test_merge_patch.py::test_nothing_that_is_sealed_goes_to_another_host_unnamed"),
    Mutant("let an owner patch a handler's schedule", "server/api/schedules.py", "check=lambda schedule: check_target(",
           "check=lambda schedule: schedule and (lambda *_: None)(",
           "tests/server/test_caller.py::test_bound_tokens_write_http_targets_only"),
    Mutant("tell readers which networks workers reach", "server/api/schedules.py",
           'if target is not None and "write" not in', 'if False and "write" not in',
           "tests/server/test_caller.py::test_whoever_may_not_put_a_target_is_not_told_which_networks_workers_reach"),
    Mutant("say nothing of what a put removed", "schedules/removed_fields.py", "return [*_removed(old, new), ", "return [*[], ",
           "tests/server/test_schedules_api.py::test_a_put_that_replaces_says_beside_the_schedule_what_it_removed"),
    Mutant("resume what is paused without a word", "schedules/removed_fields.py", '*(["paused"] if', '*(["paused"] if False and',
           "tests/server/test_schedules_api.py::test_a_put_over_a_paused_schedule_says_that_it_resumed_it"),
    Mutant("remember patches that change nothing", "server/api/schedules.py", "if written.is_changed:", "if True:",
           "tests/server/test_schedules_api.py::test_a_patch_that_changes_nothing_is_answered_and_not_remembered"),
    Mutant("replace what is there without being told to", "cli/commands/add.py", "version = 0 if create_only else if_version",
           "version = if_version", "tests/cli/test_schedules.py::test_add_refuses_a_key_that_is_there_and_says_what_to_do"),
    Mutant("advise --paused when a schedule is resumed", "cli/commands/resume.py", "    except NeverFires as error:",
           "    except TypeError as error:",
           "tests/cli/test_schedules.py::test_a_command_refused_because_nothing_would_fire_names_its_own_remedy"),
    Mutant("speak of all schedules where one owner has none", "cli/commands/list.py", "if owner else", "if False else",
           "tests/cli/test_schedules.py::test_an_empty_list_names_what_was_asked_for"),
    Mutant("take a URL for a handler's name", "server/pages/schedules.py", 'if kind == "python" and "://" in to:', "if False:",
           "tests/server/test_forms.py::test_a_url_in_place_of_a_handler_name_is_an_error_at_its_field"),
    Mutant("publish defaults that generators send", "server/openapi/schemas.py", 'field.pop("default", None)', "pass",
           "tests/server/test_openapi.py"),
    Mutant("publish a backoff that is not the default", "server/openapi/types.py", "_POLICY = default_fields()",
           '_POLICY = {**default_fields(), "backoff": [5, 300]}',
           "tests/server/test_openapi.py::test_every_published_default_is_what_a_put_without_the_field_stores"),
    Mutant("write bounds as text", "model/schedule_json.py",
           'body["starts_at"] = schedule.starts_at', 'body["starts_at"] = str(schedule.starts_at)',
           "tests/server/test_schedules_api.py::test_every_instant_in_an_answer_is_in_milliseconds"),
    Mutant("let those that hang take every slot", "deliver/run_options.py",
           "min(total // 5, max(total - self.per_owner, 0))", "0",
           "tests/deliver/test_claim_loop.py::test_an_idle_owners_fire_starts_within_a_second_while_ten_others_hang"),
    Mutant("reserve nothing at hosts", "deliver/fair_queue.py", "per_host = self._per_host if idle else self._shared_per_host",
           "per_host = self._per_host",
           "tests/deliver/test_fair_queue.py::test_an_owner_with_nothing_in_flight_starts_at_once_while_ten_others_hang"),
    Mutant("leave the leases of a busy loop to end", "deliver/lease_extender.py",
           "LeaseKeeper(config.reopen, clock", "LeaseKeeper(None, clock",
           "tests/deliver/test_lease_keeper.py::"
           "test_a_handler_that_blocks_the_event_loop_for_longer_than_a_lease_keeps_its_fires"),
    Mutant("keep the dead waiting", "deliver/run_options.py",
           "DEFAULT_LEASE = timedelta(seconds=10)", "DEFAULT_LEASE = timedelta(seconds=60)",
           "tests/deliver/test_claim_loop.py::test_what_a_killed_worker_had_is_taken_over_within_15_seconds"),
    Mutant("take over as soon as the store is back", "deliver/claim_loop.py",
           "                self._leases.takeover_hold.store_failed()\n", "",
           "tests/deliver/test_claim_loop.py::"
           "test_a_store_that_was_away_for_longer_than_a_lease_makes_nobody_take_over_from_the_living"),
    Mutant("begin what another has taken over", "deliver/lease_extender.py",
           "if claim.fire is None or claim.fire.id not in lost", "",
           "tests/deliver/test_claim_loop.py::test_a_claim_that_is_answered_after_its_lease_is_left_to_who_has_taken_it_over"),
    of_store("postgres", "wait for a lease that is locked", "            FOR UPDATE OF held SKIP LOCKED\n", "",
             "tests/stores/test_postgres.py::"
             "test_a_fire_that_somebody_has_locked_holds_up_no_other_lease_and_is_not_lost", "fires"),
    Mutant("connect to what was not checked", "deliver/address_guard.py",
           "for network, what in _NOT_PUBLIC:", "for network, what in ():",
           "tests/deliver/test_address_guard.py"),
    Mutant("decode payloads when they are read", "model/payload.py",
           "self._value: object = _NOT_DECODED", "self._value = self.read()",
           "tests/model/test_payload.py::test_what_is_only_passed_on_is_never_decoded"),
    Mutant("decode payloads for an envelope", "webhooks/envelope.py", "payload = encodable_payload(delivery)",
           "payload = delivery.payload",
           "tests/deliver/test_http.py::test_a_payload_is_sent_as_it_is_stored_without_being_decoded"),
    of_store("memory", "claim any number of bytes", "left, budget = request.limit, ByteBudget(request.max_bytes)",
             "left, budget = request.limit, ByteBudget(1 << 60)", CLAIM_BYTES, "fires"),
    of_store("sqlite", "claim any number of bytes", "left, budget = request.limit, ByteBudget(request.max_bytes)",
             "left, budget = request.limit, ByteBudget(1 << 60)", CLAIM_BYTES, "fires"),
    of_store("postgres", "claim any number of bytes", "WHERE bytes <= $5 OR ($6 AND bytes = octet_length(body))",
             "WHERE bytes <= $5 OR $6", CLAIM_BYTES, "fires"),
    of_store("postgres", "forget the bytes that a claim has taken",
             "budget.fitting(due, _body_bytes)",
             "pass", "tests/conformance/test_postgres.py::TestFires::"
             "test_behind_rows_that_do_not_read_a_claim_goes_on_with_the_bytes_that_are_left", "fires"),
    of_store("dynamodb", "claim any number of bytes", "due = _within(found, request.max_bytes, taken)", "due = found",
             CLAIM_BYTES, "fires/claim"),
    of_store("memory", "lease any number of bytes", "        budget = ByteBudget(request.max_bytes)\n        fitting",
             "        budget = ByteBudget(1 << 60)\n        fitting", LEASE_BYTES, "fires"),
    of_store("sqlite", "lease any number of bytes", "schedules.read_within(ByteBudget(request.max_bytes)",
             "schedules.read_within(ByteBudget(1 << 60)", LEASE_BYTES, "fires"),
    of_store("postgres", "lease any number of bytes", "budget, others = ByteBudget(request.max_bytes), list",
             "budget, others = ByteBudget(1 << 60), list", LEASE_BYTES, "fires"),
    of_store("dynamodb", "lease any number of bytes", "ByteBudget(request.max_bytes), False", "ByteBudget(1 << 60), False",
             LEASE_BYTES, "fires/lease"),
    Mutant("hold any number of bytes", "deliver/payload_memory.py", "        self.bytes += by", "        pass",
           "tests/deliver/test_payload_memory.py::"
           "test_however_many_owners_there_are_a_worker_holds_no_more_than_twice_its_bytes"),
    Mutant("count a payload once a claim", "deliver/payload_memory.py", "            if holders == 1:", "            if holders:",
           "tests/deliver/test_payload_memory.py::test_what_several_claims_share_is_held_once"),
    Mutant("claim nothing while many bytes are held", "deliver/claimer.py",
           "int(dispatcher.room_for_idle()), [*dispatcher.owners()]", "0, except_owners",
           "tests/deliver/test_payload_memory.py::"
           "test_owners_that_hold_all_the_bytes_there_are_keep_nobody_out_who_has_none"),
    Mutant("decode in any number of handlers", "deliver/payload_memory.py",
           "is_admitted = self._limit.enter(lane.owner, size, (lane, claim))", "is_admitted = True",
           "tests/deliver/test_payload_memory.py::test_handlers_have_no_more_decoded_at_once_than_fits"),
    Mutant("keep no memory for owners that have none", "deliver/decoding_limit.py", "self._used + size > self._total",
           "self._used + size > self._shared",
           "tests/deliver/test_payload_memory.py::test_owners_whose_handlers_hang_keep_nobody_out_who_has_nothing_decoded"),
    Mutant("wait for memory while told to stop", "deliver/dispatcher.py", "        self._memory.clear()", "        pass",
           "tests/deliver/test_payload_memory.py::"
           "test_what_waits_for_memory_is_released_as_soon_as_the_worker_is_told_to_stop"),
    Mutant("fail for want of file descriptors", "deliver/targets/http.py",
           "if isinstance(error, NotConnected) and (out_of := exhaustion(error)) is not None:",
           "if (out_of := None) is not None:",
           "tests/deliver/test_exhaustion.py::"
           "test_a_worker_without_file_descriptors_loses_nothing_and_delivers_when_it_has_some"),
    Mutant("use a connection again that has something left on it", "deliver/http_client/response.py",
           "reusable = self.reusable and is_alone", "reusable = self.reusable",
           "tests/deliver/http_client/test_response.py::test_a_response_is_read_wherever_it_is_split"),
    Mutant("send on a connection that was closed while it was idle", "deliver/http_client/outbox.py",
           "if connection in ended:", "if False:",
           "tests/deliver/http_client/test_connections.py::"
           "test_a_connection_that_ends_between_a_request_and_its_sending_costs_no_attempt"),
    Mutant("use a connection again before its request is sent", "deliver/http_client/connection.py",
           " and not transport.get_write_buffer_size()", "",
           "tests/deliver/http_client/test_connections.py::"
           "test_a_receiver_that_answers_before_it_has_read_the_request_is_heard_and_not_used_again"),
    Mutant("connect by a socket that was not checked", "deliver/http_client/connector.py",
           ", socket_factory=self._guard.socket_to", "",
           "tests/deliver/test_address_guard.py::test_the_socket_is_checked_even_if_everything_before_it_failed"),
    Mutant("count only what TLS passes on", "deliver/http_client/connection.py",
           "self._left -= len(data)", "self._left -= len(data) if self._tls is None else 0",
           "tests/deliver/http_client/test_connections.py::test_what_tls_keeps_to_itself_counts_on_every_event_loop"),
    Mutant("count only what TLS passes on to a session", "deliver/counted_tls.py",
           "self.left -= self._incoming.pending - self._unread", "",
           "tests/deliver/test_http_session.py::test_what_tls_keeps_to_itself_counts_as_well"),
    Mutant("claim on while something has run out", "deliver/shortage.py",
           "return max(min(wanted, self._allowed + trickle - self._claimed), 0)", "return wanted",
           "tests/deliver/test_release.py::test_while_something_has_run_out_less_is_claimed_and_nothing_is_lost"),
    Mutant("claim nothing more after a shortage while all that is in hand hangs", "deliver/shortage.py",
           "self._allowed + trickle - self._claimed", "self._allowed - self._claimed",
           "tests/deliver/test_release.py::"
           "test_a_little_is_claimed_after_a_shortage_though_nothing_that_is_in_hand_ends"),
    Mutant("count the time that a fire was postponed as time that no worker could begin it", "deliver/retry.py",
           "was_attempted else now_ms", "was_attempted else fire.opened_at",
           "tests/deliver/test_release.py::"
           "test_a_fire_that_was_postponed_for_almost_30_days_has_30_more_until_a_worker_can_begin_it"),
    Mutant("fail what this worker has no handler for", "deliver/attempt.py",
           'if then == "dead" or deliver_after is None:', "if True:",
           "tests/deliver/test_release.py::test_a_worker_without_the_handler_leaves_the_fires_to_one_that_has_it"),
    Mutant("race with those that have the handler", "deliver/claimer.py",
           "HEAD_START_MS if others_can", "0 if others_can",
           "tests/deliver/test_release.py::test_a_worker_that_lacks_a_handler_leaves_the_others_a_head_start"),
    Mutant("lose what is released at most once", "deliver/dispatcher.py",
           "self._settlement_writer.open(fire, settlement.entry)", "_ = fire",
           "tests/deliver/test_release.py::test_what_was_not_begun_when_a_worker_is_told_to_stop_is_delivered_by_the_next"),
    Mutant("open twice what is released", "deliver/settlement_writer.py", "if fire.id in self._maybe_opened and await",
           "if False and await",
           "tests/deliver/test_release.py::test_what_was_released_by_an_answer_that_was_lost_is_delivered_once"),
    Mutant("sql: count what is postponed", "stores/sql/fires.py", '"postpone": _UNCOUNTED',
           '"postpone": "deliver_after = {deliver_after}, worker = NULL, reason = {reason}"', POSTPONED),
    Mutant("sqlite: let what waited grow old behind what is postponed", "stores/sqlite/fires.py",
           "opened_at = max(?, nominal_at), ", "opened_at = min(?, opened_at), ",
           FIRES_ON_SQLITE + "test_an_instant_that_comes_while_a_fire_is_postponed_waits_and_opens_afterwards"),
    Mutant("sqlite: open what is postponed without its entry", "stores/sqlite/fires.py",
           "            rows.record(connection, [] if entry is None else [entry], expires_at)\n", "",
           FIRES_ON_SQLITE + "test_a_claim_without_a_fire_that_is_postponed_is_opened_together_with_its_entry"),
    Mutant("postpone for ever", "deliver/retry.py",
           "if retry_at <= max(claim.nominal_at, opened_at) + MAX_POSTPONEMENT_MS:", "if True:",
           "tests/deliver/test_postpone.py::test_a_fire_is_dead_as_soon_as_it_is_postponed_beyond_its_thirty_days"),
    Mutant("postpone what was missed for long no more", "deliver/retry.py",
           "max(claim.nominal_at, opened_at)", "claim.nominal_at",
           "tests/deliver/test_postpone.py::test_thirty_days_count_from_the_instant_or_from_when_the_fire_was_opened"),
    Mutant("wait for the policy's delay where an instant was given", "deliver/retry.py",
           '        return NextStep("retry", outcome.retry_at)', "        pass",
           "tests/deliver/test_postpone.py::"
           "test_one_that_counts_is_a_failed_attempt_and_the_next_is_exactly_then_until_none_is_left"),
    Mutant("sleep past what is postponed at most once", "deliver/settlement_writer.py",
           "                if entry is not None:\n                    self._wake()\n", "",
           "tests/deliver/test_postpone.py::test_a_worker_that_looks_rarely_is_woken_for_what_its_target_postponed"),
    Mutant("sleep past what is postponed at least once", "deliver/dispatcher.py",
           'wakes=settlement.then == "postpone"', "wakes=False",
           "tests/deliver/test_postpone.py::test_a_worker_that_looks_rarely_is_woken_for_what_its_target_postponed"),
    Mutant("abandon any number of attempts", "deliver/abandoned.py", "self._of_owner[owner, label] >= MAX_PER_OWNER", "False",
           "tests/deliver/test_dispatcher.py::test_where_many_attempts_were_abandoned_no_more_begin_and_none_is_counted"),
    Mutant("forget the memory of what was abandoned", "deliver/payload_memory.py",
           "            self._limit.count(delivery.owner, size)", "            size = 0",
           "tests/deliver/test_dispatcher.py::test_what_an_abandoned_attempt_was_given_takes_memory_until_it_ends"),
    Mutant("record again what was cut off", "deliver/dispatcher.py", "self._was_cut_off = True", "pass",
           "tests/deliver/test_dispatcher.py::test_what_ends_after_it_was_cut_off_is_not_recorded_again"),
    Mutant("cancel for good who was late", "deliver/deadlines.py", "self._task.uncancel() <= self._cancelling",
           "self._task.cancelling() > self._cancelling", "tests/deliver/test_deadlines.py"),
    Mutant("forget the deadlines behind the first", "deliver/deadlines.py", "if self._at:", "if False:",
           "tests/deliver/test_deadlines.py"),
    Mutant("wait for what will not be cancelled", "deliver/abandonable_task.py", "await asyncio.wait((task,), timeout=GRACE_S)",
           "await asyncio.wait((task,))",
           "tests/deliver/test_dispatcher.py::test_a_handler_that_will_not_be_cancelled_holds_neither_its_place_nor_its_fire"),
    Mutant("find no handler missing", "observe/checks/abilities.py", "    if not missing:\n", "    if missing or not missing:\n",
           "tests/observe/test_doctor.py::test_a_handler_that_no_worker_has_is_told_and_one_that_some_have_is_worth_knowing"),
    Mutant("sqlite: count what is released", "stores/sql/fires.py", "worker = NULL, attempt = f.attempt - 1, reason",
           "worker = NULL, reason",
           "tests/conformance/test_sqlite.py::TestFires::test_what_is_released_can_be_released_again"),
    Mutant("let a repeated release undo a later lease", "fires/lease.py", "lease_token=now_ms", "lease_token=None",
           "tests/conformance/test_sqlite.py::TestFires::"
           "test_a_release_that_is_repeated_leaves_a_later_lease_of_the_same_worker_and_attempt_alone"),
    of_store("dynamodb", "take the highest attempt for the latest lease", "return fire.lease_token or 0, fire.attempt",
             "return 0, fire.attempt", "tests/conformance/test_dynamodb.py::TestFires::"
             "test_a_settlement_that_is_repeated_after_a_person_retried_the_fire_leaves_the_new_lease_alone", "fires/settle"),
    Mutant("count a new lease as lost", "deliver/held_leases.py", "return fire.id, fire.attempt, fire.lease_token",
           "return fire.id, fire.attempt, None",
           "tests/deliver/test_held_leases.py::"
           "test_what_another_had_is_extended_again_when_this_worker_leases_it_for_the_same_attempt"),
    of_store("postgres", "count what was locked as extended", "            gone, left = await self._extend(left, until_ms)",
             "            gone, left = (await self._extend(left, until_ms))[0], []",
             "tests/stores/test_postgres.py::"
             "test_a_fire_that_somebody_has_locked_holds_up_no_other_lease_and_is_not_lost", "fires"),
    Mutant("count what was skipped as extended", "deliver/held_leases.py", "if (key := _key(fire)) in skipped:",
           "if (key := _key(fire)) in ():",
           "tests/deliver/test_claim_loop.py::test_a_lease_whose_fire_was_locked_is_extended_before_it_ends"),
    Mutant("let the thread that keeps leases end with an error", "deliver/lease_keeper.py", "except Exception as error:",
           "except (TicklerError, OSError) as error:",
           "tests/deliver/test_lease_keeper.py::test_whatever_a_store_raises_is_said_once_and_it_is_asked_again"),
    Mutant("give short leases where nobody keeps them", "client.py", "if shared and reopen is None:", "if False:",
           "tests/test_connect.py::test_a_worker_on_a_pool_has_longer_leases_since_nobody_keeps_them"),
    Mutant("count a retried fire from its first opening", "stores/sqlite/fires.py", "SET opened_at = ?, attempt = 0",
           "SET opened_at = coalesce(opened_at, ?), attempt = 0",
           "tests/conformance/test_sqlite.py::TestFires::"
           "test_a_dead_fire_is_retried_from_now_on_with_no_attempts_counted"),
    Mutant("lease what is released at most once without bounds", "deliver/dispatcher.py", "if is_at_most_once(claim))",
           "if claim.fire is None)",
           "tests/deliver/test_release.py::"
           "test_what_was_released_or_triggered_at_most_once_is_leased_for_free_slots_alone"),
    Mutant("claim on after a lease of what is delivered at most once", "deliver/claimer.py",
           "self._size.leased(sum(map(is_at_most_once, claims)))", "pass",
           "tests/deliver/test_release.py::"
           "test_what_was_released_or_triggered_at_most_once_is_leased_for_free_slots_alone"),
    Mutant("leave everything to workers that have the handler", "deliver/claimer.py",
           "            now_ms=now_ms,\n            limit=min(room, CLAIM_BATCH),",
           "            now_ms=now_ms - head_start_ms,\n            limit=min(room, CLAIM_BATCH),",
           "tests/deliver/test_release.py::"
           "test_a_worker_that_lacks_a_handler_leaves_the_others_nothing_that_it_has_itself"),
    Mutant("leave fires to workers that do not say what they have", "deliver/capable_workers.py",
           "any(other.has(label) for other",
           "any(other.can_deliver_to(label) for other",
           "tests/deliver/test_release.py::"
           "test_a_worker_that_lacks_a_handler_waits_for_nobody_who_does_not_say_that_it_would_take_it"),
    *(
        of_store(store, "give nobody a head start", old, new,
                 f"tests/conformance/test_{store}.py::TestFires::"
                 "test_what_was_released_for_a_reason_is_left_to_others_for_a_head_start_and_nothing_else_is", module)
        for store, old, new, module in (
            ("memory", "(request.head_start_ms if fire.has_release_reason else 0)", "0", "fires"),
            ("sqlite", "f.reason NOT LIKE", "f.reason LIKE", "fires"),
            ("postgres", "AND ($5 = 0 OR f.reason", "AND ($5 >= 0 OR f.reason", "fires"),
            ("dynamodb", "(request.head_start_ms if fire.has_release_reason else 0)", "0", "fires/lease"),
        )
    ),
    of_store("dynamodb", "count unknown bytes as none",
             'return MAX_BODY_BYTES if size is not None or "body_revision" in item else 0',
             "return 0", "tests/stores/test_dynamodb_fires.py::"
             "test_schedules_from_before_their_bytes_were_kept_count_as_the_largest_there_may_be", "layout"),
    of_store("dynamodb", "read what is dead of everybody for one owner", "    if owner is not None:\n        async for page",
             "    if False:\n        async for page", "tests/stores/test_dynamodb_fires.py::"
             "test_the_failing_schedules_of_an_owner_cost_nothing_for_what_is_dead_of_others", "fires/lists"),
    *TABLE_MUTANTS,
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
            finished = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=REQUEST_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            return False
        if finished.returncode not in (0, 1):
            raise SystemExit(f"{mutant.name}: the test did not run:\n{finished.stdout}\n{finished.stderr}")
        return finished.returncode == 0


def main(wanted: str = "") -> int:
    console = Console()
    chosen = [mutant for mutant in MUTANTS if wanted in f"{mutant.file} {mutant.name}"]
    alive = 0
    for mutant in chosen:
        survived = survives(mutant)
        alive += survived
        verdict = "[red]SURVIVED[/]" if survived else "[green]caught[/]"
        console.print(f"{verdict}  {mutant.name}  [dim]{mutant.test.rpartition('::')[2]}")
    console.print(f"{len(chosen) - alive} passed, {alive} failed")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
