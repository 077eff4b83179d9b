"""`/bulk` and `/export` over HTTP: uploads as streams, jobs to poll, failures, and exports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from web.asking import Got, ask

from graphql_server import GraphqlServer, serving
from imports import csv_of
from pricebook.model import BulkChunk, ChangeSet
from pricebook.web.app import MAX_QUERY
from tickler import ManualClock

CONTENT = csv_of(["1,P1,5,EUR", "1,P2,x,EUR", "1,P3,6,EUR", "1,P3,7,EUR"])
CSV = {"content-type": "text/csv; charset=utf-8"}


class Client:
    """Sends requests with the token of a server."""

    def __init__(self, server: GraphqlServer) -> None:
        self.server = server

    async def send(self, method: str, path: str, body: Sequence[bytes] = (b"",), headers: Mapping[str, str] | None = None) -> Got:
        token = {"authorization": f"Bearer {self.server.token}"} if self.server.token else {}
        return await ask(self.server.app.asgi, method, path, {**token, **(headers or {})}, body)

    async def json(self, path: str) -> Any:
        got = await self.send("GET", path)
        assert (got.status, got.headers["content-type"]) == (200, "application/json"), got
        return json.loads(got.body)

    async def upload(self, path: str = "/bulk", body: Sequence[bytes] = (CONTENT,), **headers: str) -> Any:
        got = await self.send("POST", path, body, {**CSV, **{name.replace("_", "-"): text for name, text in headers.items()}})
        assert got.status == 202, got
        answer = json.loads(got.body)
        assert got.headers["location"] == f"/bulk/{answer['id']}"
        return answer


@pytest.fixture
async def client(clock: ManualClock) -> AsyncIterator[Client]:
    async with serving("memory://", clock) as server:
        await server.book.a_store("1", {f"P{n}": 100 for n in range(5)})
        await server.sign_in("read", "edit")
        yield Client(server)


async def test_a_file_is_uploaded_worked_on_and_its_job_is_polled(client: Client) -> None:
    job = await client.upload("/bulk?title=Spring&submit=true", x_request_id="request-7")
    assert (job["state"], job["lines"], job["checked"], job["change_set"]) == ("checking", 5, 0, None)
    await client.server.opened.t.tick()
    done = await client.json(f"/bulk/{job['id']}")
    assert {name: done[name] for name in ("state", "checked", "added", "changes", "failed", "error")} == {
        "state": "done", "checked": 5, "added": 5, "changes": 1, "failed": 3, "error": None,
    }  # fmt: skip
    found = await client.server.opened.db.get(ChangeSet.key.id(done["change_set"]))
    assert found is not None
    assert (found.state, found.title) == ("submitted", "Spring")
    listed = await client.json("/bulk?first=1")
    assert (listed["items"], listed["has_next"]) == ([done], False)


async def test_a_large_body_is_read_as_it_arrives(client: Client) -> None:
    lines = [f"1,P{n},5.00,EUR\n".encode() for n in range(20_000)]
    body = [b"store,product,amount,currency\n", *(b"".join(lines[n : n + 500]) for n in range(0, len(lines), 500))]
    job = await client.upload(body=body)
    assert (job["lines"], job["size"]) == (20_001, sum(map(len, body)))
    assert job["size"] > MAX_QUERY  # more than a query may have


async def test_failures_are_listed_in_pages_and_as_csv(client: Client) -> None:
    job = await client.upload()
    await client.server.opened.t.tick()
    path = f"/bulk/{job['id']}/failures"
    first = await client.json(f"{path}?first=2")
    assert [each["line"] for each in first["items"]] == [3, 4]
    assert first["items"][1] == {"line": 4, "reason": "is about the same price as line 5: leave one of them out", "other_line": 5}
    rest = await client.json(f"{path}?first=2&after={first['end']}")
    assert ([each["line"] for each in rest["items"]], rest["has_next"], rest["has_previous"]) == ([5], False, True)
    got = await client.send("GET", f"{path}?format=csv")
    assert got.headers["content-type"] == "text/csv; charset=utf-8"
    assert [row.split(",")[:2] for row in got.body.decode().splitlines()] == [
        ["line", "other_line"], ["3", ""], ["4", "5"], ["5", "4"],
    ]  # fmt: skip


async def test_an_import_is_cancelled(client: Client) -> None:
    job = await client.upload()
    got = await client.send("POST", f"/bulk/{job['id']}/cancel")
    assert (got.status, json.loads(got.body)["state"]) == (200, "cancelled")


async def test_a_request_that_is_repeated_with_its_key_starts_nothing_new(client: Client) -> None:
    job = await client.upload(idempotency_key="monday")
    assert (await client.upload("/bulk?idempotency_key=monday"))["id"] == job["id"]
    other = await client.send("POST", "/bulk", [CONTENT + b"1,P4,5,EUR\n"], {**CSV, "idempotency-key": "monday"})
    assert (other.status, "for other content" in other.problem["detail"]) == (409, True)


@pytest.mark.parametrize(
    ("path", "headers", "body", "status", "says"),
    [
        ("/bulk", {"content-type": "application/pdf"}, CONTENT, 415, "say what the body is"),
        ("/bulk", CSV | {"content-encoding": "gzip"}, CONTENT, 415, "compressed is not read"),
        ("/bulk", CSV, b"\x1f\x8b\x08", 422, "is compressed"),
        ("/bulk", CSV, b"", 422, "is empty"),
        ("/bulk?format=xml", {}, CONTENT, 422, "'xml' is unknown"),
        ("/bulk?dryrun=true", CSV, CONTENT, 422, "there is no such option: use format, title"),
        ("/bulk?dry_run=perhaps", CSV, CONTENT, 422, "neither true nor false"),
        ("/bulk?title=a&title=b", CSV, CONTENT, 422, "is there twice"),
        ("/bulk?title=%ff", CSV, CONTENT, 422, "cannot be read"),
        ("/bulk?effective=soon", CSV, CONTENT, 422, "'soon' is not a moment"),
        ("/bulk?currency=x", CSV, CONTENT, 422, "not a currency code"),
    ],
)
async def test_what_cannot_be_imported_is_refused(
    client: Client, path: str, headers: dict[str, str], body: bytes, status: int, says: str
) -> None:
    got = await client.send("POST", path, [body], headers)
    assert (got.status, says in got.problem["detail"]) == (status, True), got
    assert (await client.json("/bulk"))["items"] == []


async def test_an_upload_that_breaks_off_leaves_nothing(client: Client) -> None:
    token = f"Bearer {client.server.token}".encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/bulk",
        "raw_path": b"/bulk",
        "query_string": b"",
        "client": ("203.0.113.7", 1),
        "headers": [(b"host", b"localhost"), (b"content-type", b"text/csv"), (b"authorization", token)],
    }
    messages = [{"type": "http.request", "body": b"x" * 500_000, "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(5):
        await client.server.app.asgi(scope, receive, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 400
    measured = await client.server.opened.db.measure(sample=None)
    assert measured.table.items.get(BulkChunk.__name__, 0) == 0


async def test_roles_and_stores_hold(client: Client) -> None:
    job = await client.upload()
    for method, path in (
        ("GET", f"/bulk/{job['id']}"),
        ("POST", f"/bulk/{job['id']}/cancel"),
        ("GET", f"/bulk/{job['id']}/failures"),
    ):
        await client.server.sign_in("read", "edit", stores=["9"])
        assert (await client.send(method, path)).status == 404
    await client.server.sign_in("read")
    assert (await client.send("POST", "/bulk", [CONTENT], CSV)).status == 403
    assert (await client.json(f"/bulk/{job['id']}"))["id"] == job["id"]
    await client.server.sign_in("edit")
    assert (await client.send("GET", "/export")).status == 403
    client.server.token = ""
    for method, path in (("GET", "/bulk"), ("POST", "/bulk"), ("GET", "/bulk/1"), ("GET", "/export")):
        assert (await client.send(method, path, [CONTENT], CSV)).status == 401


async def test_prices_are_exported(client: Client) -> None:
    got = await client.send("GET", "/export?format=csv&delimiter=%3B&store=1&channel=ALL&type=Base")
    assert (got.status, got.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert got.headers["content-disposition"] == 'attachment; filename="prices.csv"'
    assert got.body.decode("utf-8-sig").splitlines()[:2] == [
        "store;channel;type;product;combination;amount;currency",
        "1;ALL;Base;P0;;1.00;EUR",
    ]
    everything = await client.send("GET", "/export")
    assert (everything.headers["content-type"], everything.body.count(b"\n")) == ("application/x-ndjson", 5)
    job = await client.upload(body=[everything.body], content_type="application/x-ndjson")
    await client.server.opened.t.tick()
    assert (await client.json(f"/bulk/{job['id']}"))["unchanged"] == 5


@pytest.mark.parametrize(
    ("query", "status"), [("format=xml", 422), ("delimiter=|", 422), ("store=7", 404), ("type=Sale", 422), ("stores=1", 422)]
)
async def test_what_cannot_be_exported_is_refused_before_the_answer_begins(client: Client, query: str, status: int) -> None:
    assert (await client.send("GET", f"/export?{query}")).status == status
