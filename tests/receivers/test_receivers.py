"""The receivers of the guide, each on a real server, and a real Tickler that delivers to them."""

from __future__ import annotations

import json
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import tickler
from receivers.programs import served, write_program
from tickler import HttpTarget, Policy, Schedule, Tickler
from tickler.fires import Entry
from tickler.model.fire import fire_id
from tickler.webhooks.signature import sign

SERVERS = {"flask": "werkzeug", "django": "wsgiref", "fastapi": "uvicorn"}

every_framework = pytest.mark.parametrize("framework", SERVERS)


class Receiver(msgspec.Struct, frozen=True):
    """One that is being served, and what it has done."""

    url: str
    folder: Path

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.folder / "receiver.db")) as database:
            return database.execute(query).fetchall()

    @property
    def posts(self) -> list[tuple[object, ...]]:
        return self.rows("SELECT owner, text FROM posts")

    @property
    def seen(self) -> list[tuple[object, ...]]:
        return self.rows("SELECT fire_id FROM seen")

    def status_of(self, body: bytes, headers: Mapping[str, str]) -> int:
        """Of its answer to this."""
        request = urllib.request.Request(self.url, body, {"content-type": "application/json", **headers}, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                status: int = response.status
                return status
        except urllib.error.HTTPError as error:
            with error:
                return error.code


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """What workers sign with."""
    secret = tickler.new_secret()
    monkeypatch.setenv("TICKLER_SIGNING_SECRET", secret)
    return secret


@pytest.fixture
def receiver(framework: str, secret: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Receiver]:
    """A receiver in the midst of a rotation: it knows a secret that nobody signs with yet."""
    options = getattr(request, "param", ())
    program = write_program("receivers.md", f"{framework}_receiver.py", tmp_path)
    rotating = f"{tickler.new_secret()},{secret}"
    with served(program, SERVERS[framework], *options, environ={"TICKLER_SIGNING_SECRET": rotating}) as address:
        yield Receiver(f"{address}/hook", tmp_path)


async def delivered(t: Tickler, receiver: Receiver) -> list[Entry]:
    """Fire a schedule, tick until nothing is owed, and see what happened."""
    schedule = Schedule(
        owner="ada",
        key="post",
        when="@daily",
        target=HttpTarget(receiver.url),
        payload={"text": "hello"},
        policy=Policy(backoff=[0]),
        enabled=False,  # it fires when it is triggered, and not at midnight
    )
    await t.schedules.put(schedule)
    await t.trigger("ada", "post")
    while (await t.fires.list()).items:
        await t.tick(budget_ms=20_000)
    return (await t.fires.history("ada", "post")).items


@every_framework
async def test_a_fire_is_delivered_and_processed(framework: str, receiver: Receiver, sqlite_url: str) -> None:
    async with tickler.connect(sqlite_url, allow_networks=("127.0.0.0/8",)) as t:
        (entry,) = await delivered(t, receiver)
    assert (entry.happened, entry.status) == ("delivered", 204)
    assert (receiver.posts, receiver.seen) == ([("ada", "hello")], [(entry.fire_id,)])


@every_framework
@pytest.mark.parametrize("receiver", [("fail-once",)], indirect=True)
async def test_a_fire_that_is_sent_twice_is_processed_once(framework: str, receiver: Receiver, sqlite_url: str) -> None:
    async with tickler.connect(sqlite_url, allow_networks=("127.0.0.0/8",)) as t:
        second, first = await delivered(t, receiver)
    assert [(entry.happened, entry.status, entry.attempt) for entry in (first, second)] == [
        ("failed", 500, 1),
        ("delivered", 204, 2),
    ]
    assert first.fire_id == second.fire_id
    assert (receiver.posts, receiver.seen) == ([("ada", "hello")], [(first.fire_id,)])


@every_framework
def test_a_forged_request_is_refused_and_not_processed(framework: str, receiver: Receiver, secret: str) -> None:
    now_s = int(time.time())
    id = fire_id("ada", "post", now_s * 1000)
    data = {"id": id, "owner": "ada", "key": "post", "nominal_at": now_s * 1000, "attempt": 1, "payload": {"text": "hello"}}
    body = json.dumps({"type": "schedule.fired", "timestamp": "2026-01-01T00:00:00Z", "data": data}).encode()

    def signed(with_secret: str, at_s: int) -> dict[str, str]:
        signature = sign([with_secret], id, at_s, body)
        return {"webhook-id": id, "webhook-timestamp": str(at_s), "webhook-signature": signature}

    assert receiver.status_of(body, {}) == 401
    assert receiver.status_of(body, signed(tickler.new_secret(), now_s)) == 401
    assert receiver.status_of(body.replace(b"hello", b"h4ck3"), signed(secret, now_s)) == 401
    assert receiver.status_of(body, signed(secret, now_s - 3600)) == 401  # was good once
    assert (receiver.posts, receiver.seen) == ([], [])

    assert receiver.status_of(body, signed(secret, now_s)) == 204
    assert receiver.posts == [("ada", "hello")]
