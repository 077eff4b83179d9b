"""Ways to break tables, for `mutants.py`."""

from __future__ import annotations

from mutant import Mutant

PLANNER = "tests/table/test_planner.py::"
CODEC = "tests/table/test_key_codec.py::"
MEMORY = "tests/table/test_memory.py::TestMemory::"
SQLITE = "tests/table/test_sqlite.py::TestFile::"
POSTGRES = "tests/table/test_postgres.py::TestPostgres::"
DYNAMODB = "tests/table/test_dynamodb_kit.py::TestDynamodb::"
ON_DYNAMODB = "tests/table/test_dynamodb.py::"
OTHER_ENTITY = "test_an_item_of_another_entity_is_named_and_no_operation_changes_it"
EXPIRED = "test_an_expired_item_is_absent_for_writes"
FORGED = "test_cursors_of_other_queries_and_forged_ones_are_refused"
EMPTY_PAGE = "test_an_empty_page_behind_the_last_item_knows_of_those_before_it"
SPANS = "tests/table/test_page.py::test_a_span_is_cut_at_a_sort_key_and_keeps_it"
DISJOINT = "tests/table/test_disjoint.py::"
CHANGES = "tests/table/test_changes.py::"
JOINED = "tests/table/test_with_schedules.py::"
UNITS = "tests/table/test_units.py::test_units_are_those_that_dynamodb_counts"
KILLED = "tests/table/test_killed_writers.py::test_a_writer_that_is_killed_at_any_step_leaves_its_whole_transaction_or_nothing"

TABLE_MUTANTS = [
    # planner
    Mutant("plan: take each side of an or for a fact", "table/planner.py", "if isinstance(condition, And):",
           'if hasattr(condition, "parts"):', PLANNER + "test_what_is_in_a_disjunction_is_no_fact"),
    Mutant("plan: take facts of an item that may not exist", "table/planner.py",
           "if update.when is not None and not creates:", "if update.when is not None:",
           PLANNER + "test_an_upsert_may_create_the_item_so_nothing_is_untouched_and_no_fact_is_taken"),
    Mutant("plan: leave the indexes of a created item alone", "table/planner.py", "if not creates and not any(",
           "if not any(", PLANNER + "test_an_upsert_may_create_the_item_so_nothing_is_untouched_and_no_fact_is_taken"),
    Mutant("plan: only equal paths overlap", "table/planner.py", "place[: len(steps)] == steps[: len(place)]",
           "place == steps", PLANNER + "test_paths_overlap_when_one_prefixes_the_other"),
    Mutant("plan: add to nothing", "table/planner.py",
           "found = MISSING if isinstance(change, Set | Remove) else self._before(place)", "found = MISSING",
           PLANNER + "test_add_never_writes_the_delta_into_a_key"),
    Mutant("plan: forget that the version is raised", "table/planner.py", "return [*update.changes, *own]",
           "return [*update.changes]", PLANNER + "test_a_version_in_a_key_makes_every_update_touch_it"),
    Mutant("plan: guard on what is known", "table/planner.py",
           "tuple(path for path in paths.values() if knowledge.after(path) is UNKNOWN)", "tuple(paths.values())",
           PLANNER + "test_a_guard_is_on_the_unknown_dependencies_only"),
    # key codec
    Mutant("key codec: leave the escape character as it is", "table/key_codec.py", 'range(ord("%") + 1)', 'range(ord("%"))',
           CODEC + "test_different_components_never_give_one_key"),
    Mutant("key codec: no end of a negative number", "table/key_codec.py", 'return f"-{text.translate(_MIRROR)}{_END}"',
           'return f"-{text.translate(_MIRROR)} "', CODEC + "test_decimals_sort_by_size"),
    Mutant("key codec: round to the decimal context", "table/key_codec.py", 'format(number.copy_abs(), "f")',
           'format(abs(number), "f")', CODEC + "test_the_decimal_context_does_not_round_a_key"),
    Mutant("key codec: read what is never written", "table/key_codec.py", "if encode(value) == text:", "if True:",
           CODEC + "test_a_text_that_is_never_written_is_not_read"),
    Mutant("key codec: keep the zeros of a fraction of a second", "table/key_codec.py",
           'return text if len(text) == 19 else text.rstrip("0")', "return text",
           CODEC + "test_a_value_is_written_as_documented_and_read_back"),
    Mutant("key codec: bound a prefix by the separator", "table/key_codec.py",
           "return prefix + SEPARATOR, prefix + _AFTER", 'return prefix + SEPARATOR, prefix + "%"',
           CODEC + "test_bounds_are_made_of_the_separator_and_the_character_behind_it"),
    # pages
    Mutant("page: nothing lies before the first key of a span", "table/page.py",
           "if span.low is not None and span.low > sort:", "if span.low is not None and span.low >= sort:", MEMORY + EMPTY_PAGE),
    Mutant("page: nothing lies behind the last key of a span", "table/page.py",
           "if span.high is not None and span.high < sort:", "if span.high is not None and span.high <= sort:",
           MEMORY + EMPTY_PAGE),
    Mutant("page: include an excluded bound", "table/page.py", "span.high <= sort else", "span.high < sort else", SPANS),
    Mutant("page: take what comes next for what came before", "table/page.py",
           "low=sort if span.low is None else max(span.low, sort)", "low=span.low",
           "tests/table/test_page.py::test_an_item_that_arrives_beyond_an_empty_page_is_not_before_it"),
    Mutant("page: a full page always has a next one", "table/page.py", "len(items) > size)", "len(items) >= size)",
           MEMORY + "test_a_page_that_ends_with_the_last_item_has_no_next"),
    Mutant("page: each entity has the range of all", "table/page.py", "        if self._spans_differ:\n", "        if False:\n",
           MEMORY + "test_each_of_several_selections_keeps_its_own_range"),
    Mutant("page: read spans that touch twice", "table/page.py", "span.low <= merged[-1].high", "span.low < merged[-1].high",
           MEMORY + "test_selections_that_overlap_show_each_item_once"),
    Mutant("page: begin each span at its start", "table/page.py",
           "if start is not None and _is_behind(span, start, backwards):", "if False:",
           MEMORY + "test_several_entities_of_a_partition_are_one_query"),
    # cursors
    Mutant("cursor: do not compare signatures", "table/cursor.py",
           " or not hmac.compare_digest(signature, self._signature(body))", "", MEMORY + FORGED),
    Mutant("cursor: take a text that is not canonical", "table/cursor.py", "_text(raw) != cursor or ", "",
           "tests/table/test_cursor.py::test_a_cursor_with_another_last_character_is_refused"),
    Mutant("cursor: forget the filter", "table/page.py", "sorted(self.entities), repr(self.where)]", "sorted(self.entities)]",
           MEMORY + FORGED),
    # disjoint
    Mutant("disjoint: a negated comparison is a bound", "table/disjoint.py", "if one.negated or other.negated:", "if False:",
           DISJOINT + "test_conditions_that_may_hold_together_may_not"),
    Mutant("disjoint: bounds that meet exclude each other", "table/disjoint.py",
           'return bool(high < low) if upper.operator == "<="', 'return bool(high <= low) if upper.operator == "<="',
           DISJOINT + "test_conditions_that_may_hold_together_may_not"),
    Mutant("disjoint: unequal needs a value", "table/disjoint.py", "            return self.negated\n",
           "            return True\n", DISJOINT + "test_conditions_that_may_hold_together_may_not"),
    # operations and changes
    Mutant("decide: update what does not exist", "table/operation.py",
           "if isinstance(operation, Update) and found is None and operation.initial is None:", "if False:",
           MEMORY + "test_an_update_of_an_item_that_does_not_exist_is_refused"),
    Mutant("decide: a new item may have any version", "table/operation.py", "stored = 0 if found is None else",
           "stored = expected if found is None else",
           MEMORY + "test_each_write_raises_the_version_and_a_put_of_another_one_is_refused"),
    Mutant("decide: replace what does not exist", "table/operation.py",
           'and (found is None) != (operation.must == "create"):', 'and found is not None and operation.must == "create":',
           MEMORY + "test_replace_refuses_a_key_that_is_free"),
    Mutant("decide: never raise the version", "table/operation.py", "getattr(entity, name) + 1", "getattr(entity, name)",
           MEMORY + "test_each_write_raises_the_version_and_a_put_of_another_one_is_refused"),
    Mutant("change: add with the precision of Python", "table/change.py", "Context(prec=38)", "Context(prec=28)",
           CHANGES + "test_decimals_are_added_with_38_digits"),
    Mutant("change: keep an empty set where it can be missing", "table/change.py",
           "return left if left or not can_be_missing(self.path) else msgspec.UNSET", "return left",
           CHANGES + "test_sets_keep_their_type"),
    Mutant("change: reach into None", "table/change.py", "if rest and (found is msgspec.UNSET or found is None):",
           "if rest and found is msgspec.UNSET:", CHANGES + "test_changes_that_make_no_sense_are_refused"),
    # expressions and requests of DynamoDB
    Mutant("expressions: an item expires a millisecond early", "table/engines/dynamodb/expressions.py",
           "OR {name} >= {self.value", "OR {name} > {self.value",
           DYNAMODB + "test_an_expired_item_is_absent_from_every_read"),
    Mutant("expressions: forget that unequal needs what is stored", "table/engines/dynamodb/expressions.py",
           'f"({present} AND {stored})" if leaf.holds_for(MISSING) else stored', "stored",
           ON_DYNAMODB + "test_an_attribute_from_before_it_was_declared_counts_as_its_default_in_conditions"),
    Mutant("expressions: every default satisfies", "table/engines/dynamodb/expressions.py",
           "for length, value in _defaults(leaf.path) if leaf.holds_for(value)]", "for length, value in _defaults(leaf.path)]",
           ON_DYNAMODB + "test_an_attribute_from_before_it_was_declared_counts_as_its_default_in_conditions"),
    Mutant("expressions: one list of any length", "table/engines/dynamodb/expressions.py", "MAX_OPERANDS = 100",
           "MAX_OPERANDS = 1_000", ON_DYNAMODB + "TestReads::test_more_values_than_one_list_takes_can_be_compared_with"),
    Mutant("requests: write without a guard on what was read for", "table/engines/dynamodb/requests.py",
           "{steps_of(path): path for path in self._plan.depends}", "{}",
           ON_DYNAMODB + "test_concurrent_updates_that_need_a_read_lose_nothing"),
    Mutant("requests: do not look of which entity an item is", "table/engines/dynamodb/requests.py",
           "present = all_of([is_of(expressions, definition), alive, *parts])",
           'present = all_of(["attribute_exists(pk)", alive, *parts])', DYNAMODB + OTHER_ENTITY),
    Mutant("requests: create only where nothing has expired", "table/engines/dynamodb/requests.py",
           "return _either(_ABSENT, None if alive is None else negated(alive)) if may_create else _never()",
           "return _ABSENT if may_create else _never()", ON_DYNAMODB + "test_an_expired_item_is_replaced_in_one_request"),
    Mutant("requests: forget the version when overtaken", "table/engines/dynamodb/requests.py",
           "definition.version if isinstance(self.operation, Put) else None", "None",
           "tests/table/test_requests.py::test_a_put_is_guarded_on_the_version_that_it_saw"),
    Mutant("requests: let a stale key stand", "table/engines/dynamodb/changes.py", 'self._clauses["REMOVE"] += names', "pass",
           DYNAMODB + "test_an_item_is_in_a_sparse_index_only_while_its_condition_holds"),
    # SQL
    Mutant("sql: see what has expired", "table/engines/sql/writes.py", " or not is_alive(cells[3], now_ms) else cells",
           " else cells", SQLITE + EXPIRED),
    Mutant("sql: look at what is replaced", "table/engines/sql/writes.py", "cells is None or is_blind(operation) or",
           "cells is None or",
           SQLITE + "test_writes_that_do_not_look_take_the_place_of_an_item_of_another_entity"),
    Mutant("sql: take an item of another entity", "table/engines/rows.py", "if entity != id.definition.name:",
           "if entity not in table.entities:", SQLITE + OTHER_ENTITY),
    Mutant("sql: let a key appear that had to stay absent", "table/engines/sql/writes.py",
           "if cells is None and isinstance(operation, Check | Delete):", "if False:",
           "tests/table/test_postgres.py::test_a_check_for_absence_holds_until_the_transaction_is_committed"),
    Mutant("postgres: delete an item of another entity", "table/engines/postgres/engine.py", "AND sk = $2 AND entity = $3",
           "AND sk = $2 AND $3 <> ''", POSTGRES + OTHER_ENTITY),
    # transactions
    Mutant("transaction: forget what was only read", "table/transaction.py",
           "return [*map(self._guarded, self._operations.values()), *reads]",
           "return [*map(self._guarded, self._operations.values())]",
           JOINED + "test_what_was_read_as_absent_must_stay_absent[memory]"),
    Mutant("transaction: forget what was read and is written", "table/transaction.py",
           "return [*map(self._guarded, self._operations.values()), *reads]", "return [*self._operations.values(), *reads]",
           JOINED + "test_a_transaction_is_repeated_until_it_does_not_conflict[memory]"),
    Mutant("transaction: compare versions alone", "table/transaction.py", "for name in definition.attributes]\n    return And",
           'for name in definition.attributes if name == "version"]\n    return And',
           "tests/table/test_transactions.py::test_an_item_that_was_deleted_and_created_again_is_a_conflict"),
    Mutant("transaction: no conflict between two reads", "table/transaction.py", "if _fails(earlier, id.definition, found):",
           "if False:", "tests/table/test_transactions.py::test_an_item_that_changed_between_two_reads_is_a_conflict"),
    *(
        Mutant(f"transaction: commit the parts of others first, on {store}", f"table/engines/{store}/engine.py", old, new,
               f"{KILLED}[{store}]")
        for store, old, new in (
            ("sqlite", "            part(database)\n",
             '            part(database)\n            database.execute("COMMIT")\n            database.execute("BEGIN")\n'),
            ("postgres", "            await part(connection)\n",
             '            await part(connection)\n            await connection.execute("COMMIT; BEGIN")\n'),
        )
    ),
    # units
    Mutant("units: moving an entry is one write", "table/units.py", "return write_units(before) + write_units(after)",
           "return write_units(after)", UNITS),
    Mutant("units: leaving an index costs the item after", "table/units.py",
           "write_units(before if new is None else after)", "write_units(after)", UNITS),
    Mutant("units: a transaction that deletes nothing costs twice", "table/units.py",
           "2 if transaction and (before or after) else 1", "2 if transaction else 1",
           "tests/table/test_explain.py::test_units_of_a_transaction_are_those_that_dynamodb_counts"),
    Mutant("units: round down", "table/units.py", "math.ceil(size_of(item) / WRITE_BYTES)",
           "size_of(item) // WRITE_BYTES", UNITS),
    # definitions of indexes
    Mutant("index texts: forget defaults", "table/index_texts.py", 'return f", by default {\', \'.join(texts)}" if texts else ""',
           'return ""', "tests/table/test_index_texts.py::"
           "test_another_default_of_an_attribute_of_an_index_is_another_definition"),
    Mutant("index texts: forget the condition", "table/index_texts.py", "{index.sk!r}{when}", "{index.sk!r}",
           "tests/table/test_reindex.py::test_a_changed_condition_moves_items_when_a_small_table_is_opened"),
    Mutant("index texts: forget the expiry", "table/index_texts.py",
           'EXPIRY: "" if definition.expires is None else definition.expires.name', 'EXPIRY: ""',
           "tests/table/test_reindex.py::"
           "test_an_expiry_that_is_declared_later_counts_for_items_that_are_stored_already"),
    Mutant("index texts: hold an entity of which nothing is stored to be outdated", "table/index_texts.py",
           "        if entity in stored\n", "", "tests/table/test_reindex.py::test_new_entities_and_new_names_need_nothing"),
]  # fmt: skip
