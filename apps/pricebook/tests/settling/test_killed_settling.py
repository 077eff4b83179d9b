"""A process that is killed at any step from the change to its events loses nothing, and nothing is done twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from event_receiver import receiving
from killed_process import answer_of
from killed_settling import BEFORE, ENDS, open_told_book, start_of
from pricebook.model import PastPrice, Price, PriceKey, UnsettledEdition, Value
from settled_book import MINUTE, SettledBook
from tickler import ManualClock, new_key

MAX_ATTEMPTS = 24
EVENTS = {"prices.approved.v1": 1, "prices.changed.v1": 2}


async def test_a_process_that_is_killed_at_any_step_from_change_to_event_loses_nothing_and_does_nothing_twice(
    stored_url: str, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKLER_KEY", new_key())
    told = tmp_path / "told"
    async with receiving(clock) as receiver, open_told_book(stored_url, receiver.receiver.url, told, clock) as book:
        await book.t.secrets.put(receiver.receiver.owner, receiver.secret)
        for number in range(1, MAX_ATTEMPTS):
            await _a_store(book, f"store{number}", start_of(number) - timedelta(days=1))
        attempts = await answer_of("killed_settling", stored_url, receiver.receiver.url, str(told))
        assert 10 < attempts < MAX_ATTEMPTS
        await book.t.secrets.put(receiver.receiver.owner, receiver.secret)  # each process has put its own
        expected = await _state(book, attempts)  # that one was not killed
        clock.set(start_of(attempts + 1))
        await book.follow()
        await book.play(timedelta(hours=1))
        left = await book.settling.overdue()
        assert left == 0, "the stream and the schedules were enough"
        for number in range(1, attempts):
            assert await _state(book, number) == expected, f"after a kill at step {number}"
        await book.play(start_of(attempts) + ENDS)
        await book.play(MINUTE)
        assert await book.settling.overdue() == 0
        assert set(told.read_text().split("\n")) == {"", *(f"a store{n} 1" for n in range(1, attempts + 1))}
        sent = Counter((event["store"], event["type"]) for event in receiver.events)
        assert sent == {(f"store{n}", kind): times for n in range(1, attempts + 1) for kind, times in EVENTS.items()}
        assert len(receiver.events) == len(receiver.received)


async def _a_store(book: SettledBook, store: str, at: datetime) -> None:
    """Make a store whose prices were loaded, and count from an instant on."""
    await book.switch.open_store(store)
    values = {product: Value(amount=minor, currency="EUR") for product, minor in BEFORE.items()}
    await book.db.put_many([PriceKey(store, "ALL", "Base", product).new_row({at: value}) for product, value in values.items()])


async def _state(book: SettledBook, number: int) -> str:
    """Return everything of a store but its name, how often its head was written, and when it was settled.

    Instants are those since the attempt began.
    """
    store, start = f"store{number}", start_of(number)
    rows = await book.db.query(Price.key(store), UnsettledEdition.key(store), first=100)
    past = await book.db.query(PastPrice.key(store), first=100)
    items = [msgspec.to_builtins(each, str_keys=True) for each in (await book.head(store), *rows.items, *past.items)]
    kept = [{name: value for name, value in each.items() if name not in ("store", "rev", "sealed_at")} for each in items]
    text = json.dumps(kept, sort_keys=True)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", lambda found: str(datetime.fromisoformat(found[0]) - start), text)
