"""`tickler table consumers | parked | retry | discard | forget`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tickler.testing.consumer_contract import parked_uncompressed

from .conftest import Here

MODEL = """
from tickler.errors import GiveUp
from tickler.table import Attr, Entity, Key, Table, attr, created, changed

desk = Table("desk", stream=True)
quiet = Table("quiet")

class Ticket(Entity, table=desk):
    id: Attr[str] = attr()
    n: Attr[int] = attr(default=0)
    key = Key("TICKET" / id, "TICKET")

class Note(Entity, table=quiet):
    id: Attr[str] = attr()
    key = Key("NOTE" / id, "NOTE")
"""

Consume = Callable[..., list[tuple[str, int]]]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of an application, from whose folder commands are run."""
    (tmp_path / "desk_model.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield __import__("desk_model")
    del sys.modules["desk_model"]


@pytest.fixture
def consume(model: Any, url: str) -> Consume:
    """Writes tickets, and has a consumer called `mailer` deliver what it can. Returns what that has got."""

    def call(*tickets: tuple[str, int], fails: bool = False) -> list[tuple[str, int]]:
        got: list[tuple[str, int]] = []

        def handle(change: Any) -> None:
            if fails:
                raise model.GiveUp("the mail server is down")
            got.append((change.new.id, change.new.n))

        with model.desk.connect_sync(url) as db:
            for id, n in tickets:
                db.put(model.Ticket(id=id, n=n))
            consumer = db.consumer("mailer", attempts=1)
            consumer.on(model.created(model.Ticket), model.changed(model.Ticket))(handle)
            consumer.consume()
        return got

    return call


def test_consumers_that_get_on_are_shown(consume: Consume, here: Here) -> None:
    consume(("a", 1), ("b", 1))
    done = here("table", "consumers", "desk_model:desk")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].split() == ["consumer", "state", "waiting", "parked", "last", "moved"]
    assert done.lines[1].split()[:4] == ["mailer", "idle", "0", "0"]
    assert len(done.lines) == 2
    (shown,) = here("table", "consumers", "desk_model:desk", "--json").json["consumers"]
    assert {key: shown[key] for key in ("table", "name", "shards", "held", "waiting", "parked", "state")} == {
        "table": "desk", "name": "mailer", "shards": 8, "held": 0, "waiting": 0, "parked": 0, "state": "idle",
    }  # fmt: skip


def test_one_that_has_stopped_is_shown_with_an_exit_code(
    consume: Consume, model: Any, url: str, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    consume(("a", 1))
    with model.desk.connect_sync(url) as db:
        db.put_many([model.Ticket(id="b"), model.Ticket(id="c")])
    assert here("table", "consumers", "desk_model:desk").code == 0
    monkeypatch.setattr("tickler.table.streams.status.STOPPED_AFTER_MS", -1)
    done = here("table", "consumers", "desk_model:desk")
    assert (done.code, done.lines[1].split()[:4]) == (1, ["mailer", "stopped", "2", "0"])
    done = here("table", "consumers", "desk_model:desk", "--json")
    assert (done.code, done.json["consumers"][0]["state"]) == (1, "stopped")


def test_a_table_that_nobody_has_consumed_says_so(model: Any, url: str, here: Here) -> None:
    assert here("table", "create", "desk_model:desk").code == 0
    assert here("table", "consumers", "desk_model:desk") == (0, "no consumer has run on this table\n", "")
    assert here("table", "consumers", "desk_model:desk", "--json").json == {"consumers": []}
    unknown = "tickler: no consumer 'mailer' has run on the table 'desk_model:desk': none has run yet\n"
    assert here("table", "parked", "desk_model:desk", "mailer") == (3, "", unknown)


def test_a_consumer_with_a_misspelt_name_is_refused(consume: Consume, here: Here) -> None:
    consume(("a", 1))
    assert here("table", "parked", "desk_model:desk", "mailer") == (0, "mailer has parked nothing\n", "")
    for command in (["parked"], ["retry", "--all"], ["discard", "--all", "--yes"], ["forget", "--yes"]):
        done = here("table", command[0], "desk_model:desk", "maler", *command[1:])
        assert done == (3, "", "tickler: no consumer 'maler' has run on the table 'desk_model:desk': there are mailer\n")


def test_parked_changes_are_listed(consume: Consume, here: Here) -> None:
    consume(("a", 1), ("a", 2), ("b", 1), fails=True)
    done = here("table", "parked", "desk_model:desk", "mailer")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].split() == ["id", "entity", "item", "error"]
    assert [line.split(maxsplit=4)[1:] for line in done.lines[1:]] == [
        ["Ticket", "TICKET#a", "TICKET", "GiveUp: the mail server is down"],
        ["Ticket", "TICKET#a", "TICKET", "waits for an earlier change of the same item"],
        ["Ticket", "TICKET#b", "TICKET", "GiveUp: the mail server is down"],
    ]
    shown = here("table", "parked", "desk_model:desk", "mailer", "--json").json["parked"]
    assert [(each["id"], each["pk"], each["attempts"]) for each in shown] == [
        (done.lines[1].split()[0], "TICKET#a", 1),
        (done.lines[2].split()[0], "TICKET#a", 0),
        (done.lines[3].split()[0], "TICKET#b", 1),
    ]
    assert set(shown[0]) == {"id", "entity", "pk", "sk", "error", "attempts", "parked_at"}
    assert len(here("table", "parked", "desk_model:desk", "mailer", "--limit", "1").lines) == 2


def test_changes_that_an_earlier_version_parked_are_listed_and_retried(
    consume: Consume, model: Any, url: str, here: Here
) -> None:
    consume(("a", 1), ("b", 1), fails=True)
    before = here("table", "parked", "desk_model:desk", "mailer", "--json").json["parked"]

    async def as_it_was_written() -> int:
        async with model.desk.connect(url) as db:
            return await parked_uncompressed(db.engine)

    assert asyncio.run(as_it_was_written()) == 2
    assert here("table", "parked", "desk_model:desk", "mailer", "--json").json["parked"] == before
    assert here("table", "retry", "desk_model:desk", "mailer", "--all", "--json").json == {"asked": 2}
    assert sorted(consume()) == [("a", 1), ("b", 1)]


def test_a_retry_is_made_where_the_consumer_runs(consume: Consume, here: Here) -> None:
    consume(("a", 1), ("a", 2), ("b", 1), fails=True)
    first = here("table", "parked", "desk_model:desk", "mailer", "--json").json["parked"][0]["id"]
    done = here("table", "retry", "desk_model:desk", "mailer", first)
    assert done == (0, "1 change will be tried again where mailer runs\n", "")
    assert consume() == [("a", 1), ("a", 2)], "those that wait behind it come, too"
    assert here("table", "retry", "desk_model:desk", "mailer", "--all", "--json").json == {"asked": 1}
    assert consume() == [("b", 1)]
    assert here("table", "parked", "desk_model:desk", "mailer", "--json").json == {"parked": []}
    assert here("table", "retry", "desk_model:desk", "mailer", "--all").out == "0 changes will be tried again where mailer runs\n"


def test_a_discarded_change_is_never_delivered(consume: Consume, here: Here) -> None:
    consume(("a", 1), ("a", 2), ("b", 1), fails=True)
    first = here("table", "parked", "desk_model:desk", "mailer", "--json").json["parked"][0]["id"]
    done = here("table", "discard", "desk_model:desk", "mailer", first, "--yes")
    assert done == (0, "1 change deleted\n", "")
    assert consume() == [("a", 2)]
    assert here("table", "discard", "desk_model:desk", "mailer", "--all", "--yes", "--json").json == {"discarded": 1}
    assert consume() == []
    assert here("table", "parked", "desk_model:desk", "mailer").out == "mailer has parked nothing\n"


def test_a_consumer_that_is_forgotten_is_not_shown_and_begins_anew(consume: Consume, here: Here) -> None:
    consume(("a", 1), fails=True)
    assert here("table", "forget", "desk_model:desk", "mailer", "--yes") == (0, "mailer is forgotten\n", "")
    assert here("table", "consumers", "desk_model:desk", "--json").json == {"consumers": []}
    assert here("table", "forget", "desk_model:desk", "mailer", "--yes").code == 3
    consume(("b", 1), fails=True)
    assert here("table", "forget", "desk_model:desk", "mailer", "--yes", "--json").json == {"forgotten": "mailer"}


@pytest.mark.parametrize("command", ["retry", "discard"])
def test_an_unknown_id_is_an_error_of_one_line(consume: Consume, here: Here, command: str) -> None:
    consume(("a", 1), fails=True)
    yes = ["--yes"] if command == "discard" else []
    done = here("table", command, "desk_model:desk", "mailer", "999", *yes)
    assert done == (3, "", "tickler: no parked change has the id '999': list them with `tickler table parked`\n")
    assert len(here("table", "parked", "desk_model:desk", "mailer", "--json").json["parked"]) == 1


@pytest.mark.parametrize("command", ["retry", "discard"])
@pytest.mark.parametrize("chosen", [[], ["1", "--all"]])
def test_one_change_or_all_have_to_be_chosen(model: Any, file_url: str, here: Here, command: str, chosen: list[str]) -> None:
    done = here("table", command, "desk_model:desk", "mailer", *chosen)
    assert (done.code, done.out) == (2, "")
    assert "name one parked change, or all of them with --all" in done.err


COMMANDS = [
    ["consumers", "{}"],
    ["parked", "{}", "mailer"],
    ["retry", "{}", "mailer", "--all"],
    ["discard", "{}", "mailer", "--all", "--yes"],
    ["forget", "{}", "mailer", "--yes"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_table_without_a_stream_is_an_error_of_one_line(model: Any, file_url: str, here: Here, command: list[str]) -> None:
    assert here("table", "create", "desk_model:quiet").code == 0
    done = here("table", *(part.format("desk_model:quiet") for part in command))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("tickler: the table 'quiet' keeps no changes: define it with stream=True")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_missing_table_is_an_error_and_is_not_made(model: Any, file_url: str, here: Here, command: list[str]) -> None:
    done = here("table", *(part.format("desk_model:desk") for part in command))
    assert (done.code, done.out) == (1, "")
    assert "there is no table 'desk'" in done.err
    assert "`tickler table create`" in done.err
    assert done.err.count("\n") == 1
    assert not list(Path().glob("*.db"))


def test_a_missing_table_is_an_error_on_each_store(model: Any, url: str, here: Here) -> None:
    for _ in range(2):
        done = here("table", "consumers", "desk_model:desk")
        assert (done.code, done.out) == (1, "")
        assert "there is no table 'desk'" in done.err


@pytest.mark.parametrize("command", ["parked", "forget"])
def test_a_name_that_no_consumer_can_have_is_refused(model: Any, file_url: str, here: Here, command: str) -> None:
    assert here("table", "create", "desk_model:desk").code == 0
    yes = ["--yes"] if command == "forget" else []
    done = here("table", command, "desk_model:desk", "a/b", *yes)
    assert (done.code, done.out) == (1, "")
    assert "use letters, digits" in done.err
