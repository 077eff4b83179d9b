"""Deliveries of a real worker, verified by the official packages of Standard Webhooks; what those sign, verified by ours."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

import tickler
from npm_packages import node_modules
from receivers.programs import GUIDES
from tickler import HttpTarget, InvalidSignature, Schedule, Tickler
from tickler.model.fire import fire_id

JAVASCRIPT_PACKAGE = "standardwebhooks@1.1.1"
PAYLOAD = {"text": "naïve 🦥 \u2028 \u0000", "number": 12345678901234567, "nested": [[], {}, None, 1.5]}


class Request(msgspec.Struct, frozen=True):
    """A request as it came in."""

    body: bytes
    headers: dict[str, str]

    def changed(self) -> Request:
        return Request(self.body.replace(b"number", b"numbed"), self.headers)


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """One of two that workers sign with, as while it is rotated."""
    secret = tickler.new_secret()
    monkeypatch.setenv("TICKLER_SIGNING_SECRET", f"{tickler.new_secret()},{secret}")
    return secret


@pytest.fixture
async def t(sqlite_url: str, secret: str) -> AsyncIterator[Tickler]:
    async with tickler.connect(sqlite_url, allow_networks=("127.0.0.0/8",)) as t:
        yield t


@pytest.fixture
async def delivered(t: Tickler) -> list[Request]:
    """What a worker sent."""
    requests: list[Request] = []

    async def note(request: web.Request) -> web.Response:
        requests.append(Request(await request.read(), {name.lower(): value for name, value in request.headers.items()}))
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/hook", note)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        target = HttpTarget(f"http://127.0.0.1:{runner.addresses[0][1]}/hook")
        for key in ("a", "b"):
            await t.schedules.put(Schedule(owner="ada", key=key, when="@daily", target=target, payload=PAYLOAD, enabled=False))
            await t.trigger("ada", key)
        while (await t.fires.list()).items:
            await t.tick(budget_ms=20_000)
    finally:
        await runner.cleanup()
    return requests


def message(key: str) -> tuple[str, int, str]:
    """Id, time and body of one that anybody who has the secret may sign."""
    now_s = int(time.time())
    id = fire_id("ada", key, now_s * 1000)
    data = {"id": id, "owner": "ada", "key": key, "nominal_at": now_s * 1000, "attempt": 1, "payload": PAYLOAD}
    return (
        id,
        now_s,
        json.dumps({"type": "schedule.fired", "timestamp": "2026-01-01T00:00:00Z", "data": data}, ensure_ascii=False),
    )


def check_ours_verifies(secret: str, id: str, timestamp_s: int, body: str, signature: str) -> None:
    headers = {"Webhook-Id": id, "Webhook-Timestamp": str(timestamp_s), "Webhook-Signature": signature}
    received = tickler.verify(body.encode(), headers, secret)
    assert (received.id, received.owner, received.payload) == (id, "ada", PAYLOAD)
    with pytest.raises(InvalidSignature):
        tickler.verify(body.encode() + b" ", headers, secret)


def test_the_python_package_verifies_what_a_worker_sends(delivered: list[Request], secret: str) -> None:
    assert len(delivered) == 2
    for request in delivered:
        said = Webhook(secret).verify(request.body, request.headers)
        assert (said["type"], said["data"]["payload"]) == ("schedule.fired", PAYLOAD)
        assert said["data"]["id"] == request.headers["webhook-id"]
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(request.changed().body, request.headers)
        with pytest.raises(WebhookVerificationError):
            Webhook(tickler.new_secret()).verify(request.body, request.headers)


def test_what_the_python_package_signs_is_verified(secret: str) -> None:
    id, timestamp_s, body = message("signed")
    signature = Webhook(secret).sign(id, datetime.fromtimestamp(timestamp_s, UTC), body)
    check_ours_verifies(secret, id, timestamp_s, body, signature)


def test_the_javascript_package_verifies_and_signs(delivered: list[Request], secret: str, soak: bool, tmp_path: Path) -> None:
    """By the receiver that the guide shows."""
    if not soak:
        pytest.skip("the package of npm is fetched by `make soak`")
    (tmp_path / "node_modules").symlink_to(node_modules(JAVASCRIPT_PACKAGE))
    (receiver,) = re.findall(
        r"^```js\n(.*?)^```$", (GUIDES / "receivers.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "receiver.mjs").write_text(receiver, encoding="utf-8")
    program = tmp_path / "standard_webhooks.mjs"
    program.write_text(Path(__file__).with_name("standard_webhooks.mjs").read_text(encoding="utf-8"), encoding="utf-8")
    messages = [message(f"k{n}") for n in range(20)]
    given = {
        "deliveries": [
            {"body": each.body.decode(), "headers": each.headers} for sent in delivered for each in (sent, sent.changed())
        ],
        "messages": [{"id": id, "timestamp_s": timestamp_s, "body": body} for id, timestamp_s, body in messages],
    }
    environ = {**os.environ, "TICKLER_SIGNING_SECRET": secret}
    ran = subprocess.run(
        ["node", program], input=json.dumps(given), env=environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout)
    assert said["received"] == [request.headers["webhook-id"] for request in delivered]
    assert said["refused"] == len(delivered)
    for (id, timestamp_s, body), signature in zip(messages, said["signatures"], strict=True):
        check_ours_verifies(secret, id, timestamp_s, body, signature)
