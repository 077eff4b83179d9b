"""Consumers of the changes of a table without `await`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from tickler.errors import InvalidInput
from tickler.table import Attr, Entity, Index, ItemChange, Key, Table, attr, created, entered
from tickler.table.blocking_table import BlockingTable

blocking_desk = Table("blocking_desk", stream=True)


class Ticket(Entity, table=blocking_desk):
    id: Attr[str] = attr()
    status: Attr[str] = attr(default="open")
    key = Key("TICKET" / id, "TICKET")
    open = Index("gsi1", "OPEN", id, when=status == "open")


@pytest.fixture
def desk(any_url: str) -> Iterator[BlockingTable]:
    with blocking_desk.connect_sync(any_url.replace("&shards=4", "")) as opened:
        yield opened


def test_a_consumer_calls_plain_functions_while_a_block_runs(desk: BlockingTable) -> None:
    seen: SimpleQueue[tuple[str, int]] = SimpleQueue()
    mailer = desk.consumer("mailer")

    def announce(change: ItemChange[Ticket | None, Ticket]) -> None:
        desk.update(change.key, Ticket.status.set("announced"))  # a handler may use the table
        seen.put((change.new.id, threading.get_ident()))

    mailer.on(entered(Ticket.open))(announce)
    with mailer.running():
        for id in ("1", "2"):
            desk.put(Ticket(id=id))
            announced, thread = seen.get(timeout=20)
            assert announced == id
            assert thread != threading.get_ident()
    assert desk.get(Ticket.key.id("2")).status == "announced"
    desk.put(Ticket(id="3"))
    assert seen.empty()
    assert mailer.consume(budget_ms=20_000).delivered >= 1
    assert seen.get(timeout=20)[0] == "3"


def test_a_consumer_in_steps_parks_what_fails_and_tries_it_again(desk: BlockingTable) -> None:
    seen: list[str] = []
    is_down = True
    mailer = desk.consumer("mailer", attempts=1)

    def announce(change: ItemChange[None, Ticket]) -> None:
        if is_down:
            raise RuntimeError("no mail server")
        seen.append(change.new.id)

    mailer.on(created(Ticket))(announce)
    desk.put(Ticket(id="1"))
    done = mailer.consume(budget_ms=20_000)
    assert (done.delivered, done.parked, done.caught_up) == (0, 1, True)
    (parked,) = mailer.parked()
    assert parked.error == "RuntimeError: no mail server"
    (status,) = desk.consumers()
    assert (status.name, status.parked) == ("mailer", 1)
    is_down = False
    assert mailer.retry(parked.id) == 1
    mailer.consume(budget_ms=20_000)
    assert seen == ["1"]
    mailer.forget()
    assert desk.consumers() == []


def test_an_error_in_a_block_with_a_consumer_travels(file_desk: BlockingTable) -> None:
    mailer = file_desk.consumer("mailer")
    with pytest.raises(ZeroDivisionError), mailer.running():
        raise ZeroDivisionError
    with mailer.running(), pytest.raises(InvalidInput, match="runs already"):
        mailer.consume()


@pytest.fixture
def file_desk(sqlite_url: str) -> Iterator[BlockingTable]:
    with blocking_desk.connect_sync(sqlite_url) as opened:
        yield opened


@pytest.mark.parametrize("any_url", ["sqlite"], indirect=True)
def test_a_handler_may_stop_the_consumer_that_calls_it(desk: BlockingTable) -> None:
    seen: list[str] = []
    mailer = desk.consumer("mailer")

    def announce(change: ItemChange[None, Ticket]) -> None:
        seen.append(change.new.id)
        mailer.stop()

    mailer.on(created(Ticket))(announce)
    desk.put(Ticket(id="1"))
    mailer.run()
    assert seen == ["1"]
