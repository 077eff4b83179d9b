"""Delivery over HTTP to real servers on loopback: requests, answers, and receivers that misbehave."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import html
import json
import socket
import ssl
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

import tickler
from deliver.hostile_sinks import (
    MEGABYTE,
    Behaviour,
    ScriptedResolver,
    Sink,
    answers,
    answers_and_then,
    asks_for_new_keys,
    drips,
    resets,
    says_nothing,
    sends,
    sends_and_closes,
    sends_for_ever,
    sends_much,
)
from tickler.clock import ManualClock
from tickler.deliver.address_guard import AddressGuard
from tickler.deliver.dns_resolver import SystemResolver
from tickler.deliver.retry_after import MAX_HEADER_MS, read_retry_after
from tickler.deliver.targets import http
from tickler.deliver.targets.http import HttpDeliverer
from tickler.model.delivery import Delivery, Outcome
from tickler.model.payload import RawPayload
from tickler.model.target import HttpTarget

NOW_MS = 1_780_000_000_123
NOMINAL_MS = 1_779_999_960_000
NOMINAL_ISO = "2026-05-28T20:26:00.000Z"
OLD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEW_SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


class Signing:
    """Returns the secrets to sign with, and records the calls."""

    def __init__(self) -> None:
        self.secrets = [OLD_SECRET]
        self.asked: list[HttpTarget] = []

    async def __call__(self, delivery: Delivery, target: HttpTarget) -> Sequence[str]:
        self.asked.append(target)
        return self.secrets


@pytest.fixture
def signing() -> Signing:
    return Signing()


@pytest.fixture
def resolver() -> ScriptedResolver:
    return ScriptedResolver({"receiver.example": ["127.0.0.1"], "other.example": ["127.0.0.1"], "private.example": ["10.0.0.1"]})


def unseal(target: HttpTarget, owner: str) -> HttpTarget:
    """As if it were sealed for its owner: the headers are in there."""
    if target.sealed is None:
        return target
    sealed_for, name, value = target.sealed.split("=")
    assert sealed_for == owner
    return HttpTarget(target.url, target.body, {name: value}, target.secret)


@pytest.fixture
async def deliverer(signing: Signing, resolver: ScriptedResolver) -> AsyncIterator[HttpDeliverer]:
    deliverer = HttpDeliverer(AddressGuard(["127.0.0.0/8"]), signing, unseal, ManualClock(NOW_MS), resolver=resolver)
    await deliverer.open()
    yield deliverer
    await deliverer.close()


def a_delivery(
    *, owner: str = "u1", key: str = "digest", payload: object = None, attempt: int = 1, timeout_s: float = 10.0
) -> Delivery:
    return Delivery(
        id="fire_7d1f",
        owner=owner,
        key=key,
        nominal_at=NOMINAL_MS,
        attempt=attempt,
        payload=payload,
        target=None,
        timeout_s=timeout_s,
        started_at=NOW_MS,
    )


DELIVERY = a_delivery()


async def outcome_of(deliverer: HttpDeliverer, behave: Behaviour, delivery: Delivery = DELIVERY) -> Outcome:
    async with Sink(behave) as sink:
        return await deliverer.deliver(delivery, HttpTarget(sink.url))


# What is sent


async def test_what_is_sent_is_a_post_with_all_there_is_to_know_of_the_fire(deliverer: HttpDeliverer) -> None:
    payload = {"text": "Grüße", "n": 1.5, "list": [None, True]}
    async with Sink(answers(200)) as sink:
        await deliverer.deliver(a_delivery(payload=payload, attempt=3), HttpTarget(f"{sink.url}?a=%2f&b=c+d"))
        (received,) = sink.received
        port = sink.port
    assert received.line == "POST /hook?a=%2f&b=c+d HTTP/1.1"
    assert msgspec.json.decode(received.body) == {
        "type": "schedule.fired",
        "timestamp": NOMINAL_ISO,
        "data": {"id": "fire_7d1f", "owner": "u1", "key": "digest", "nominal_at": NOMINAL_MS, "attempt": 3, "payload": payload},
    }
    headers = {name.lower(): value for name, value in received.headers.items()}
    headers.pop("webhook-signature")
    assert headers == {
        "host": f"127.0.0.1:{port}",
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "content-length": str(len(received.body)),
        "user-agent": f"Tickler/{tickler.__version__}",
        "webhook-id": "fire_7d1f",
        "webhook-timestamp": str(NOW_MS // 1000),
        "tickler-owner": "u1",
        "tickler-key": "digest",
        "tickler-nominal-at": NOMINAL_ISO,
        "tickler-attempt": "3",
    }


def signed(secret: str, received_body: bytes) -> str:
    """By hand, as the specification says."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = b"fire_7d1f." + str(NOW_MS // 1000).encode() + b"." + received_body
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


async def test_the_signature_is_of_the_id_the_time_of_the_attempt_and_the_bytes_that_are_sent(deliverer: HttpDeliverer) -> None:
    async with Sink(answers(200)) as sink:
        await deliverer.deliver(a_delivery(payload={"ä": "ß"}), HttpTarget(sink.url))
    (received,) = sink.received
    assert received.headers["webhook-signature"] == signed(OLD_SECRET, received.body)


async def test_while_a_secret_is_changed_both_sign(deliverer: HttpDeliverer, signing: Signing) -> None:
    signing.secrets = [NEW_SECRET, OLD_SECRET]
    async with Sink(answers(200)) as sink:
        await deliverer.deliver(DELIVERY, HttpTarget(sink.url))
    (received,) = sink.received
    both = f"{signed(NEW_SECRET, received.body)} {signed(OLD_SECRET, received.body)}"
    assert received.headers["webhook-signature"] == both


@pytest.mark.parametrize(
    ("payload", "headers", "body", "content_type"),
    [
        ("Grüße\n", None, "Grüße\n".encode(), "text/plain; charset=utf-8"),
        ("<a/>", {"Content-Type": "application/xml"}, b"<a/>", "application/xml"),
        ("", None, b"", "text/plain; charset=utf-8"),
        ({"a": [1, "ü"]}, None, '{"a":[1,"ü"]}'.encode(), "application/json"),
        ({"a": 1}, {"content-type": "application/cloudevents+json"}, b'{"a":1}', "application/cloudevents+json"),
        (None, None, b"null", "application/json"),
        (0, None, b"0", "application/json"),
    ],
)
async def test_a_raw_body_is_the_payload_alone(
    deliverer: HttpDeliverer, payload: object, headers: dict[str, str] | None, body: bytes, content_type: str
) -> None:
    async with Sink(answers(200)) as sink:
        await deliverer.deliver(a_delivery(payload=payload), HttpTarget(sink.url, body="raw", headers=headers))
    (received,) = sink.received
    assert received.body == body
    sent = [value for name, value in received.headers.items() if name.lower() == "content-type"]
    assert sent == [content_type]
    assert received.headers["webhook-signature"] == signed(OLD_SECRET, body)


async def test_a_payload_is_sent_as_it_is_stored_without_being_decoded(deliverer: HttpDeliverer) -> None:
    undecodable = RawPayload(msgspec.Raw(b"[1e999]"))
    async with Sink(answers(200)) as sink:
        for body in ("json", "raw"):
            await deliverer.deliver(a_delivery(payload=undecodable), HttpTarget(sink.url, body=body))
        await deliverer.deliver(a_delivery(payload=RawPayload(msgspec.Raw('"Grüße"'.encode()))), HttpTarget(sink.url, body="raw"))
    enveloped, raw, text = sink.received
    assert b'"payload":[1e999]' in enveloped.body
    assert (raw.body, raw.headers["content-type"]) == (b"[1e999]", "application/json")
    assert (text.body, text.headers["content-type"]) == ("Grüße".encode(), "text/plain; charset=utf-8")


def an_envelope(owner: str) -> dict[str, object]:
    data = {"id": "fire_7d1f", "owner": owner, "key": "payout", "nominal_at": NOMINAL_MS, "attempt": 1, "payload": {"to": "me"}}
    return {"type": "schedule.fired", "timestamp": NOMINAL_ISO, "data": data}


FORGED = msgspec.json.encode(an_envelope("victim")).decode()


@pytest.mark.parametrize(
    "payload",
    [
        an_envelope("victim"),
        {"Type": "schedule.fired", "data": {}},
        FORGED,
        f" \r\n\t{FORGED}",
        f"\ufeff{FORGED}",
        FORGED.replace("schedule.fired", "sch\\u0065dule.fired"),
        FORGED.replace('"type"', '"ty\\u0070e"'),
        FORGED.replace('{"type"', '{"type":"other","type"'),
        FORGED.replace("}}}", '}},"type":"other"}'),
        f"{FORGED} and more",
        f"{{'type': 'schedule.fired', // {FORGED}",
        f"/* hello */ {FORGED}",
        f"// hello\n{FORGED}",
        f"# hello\n{FORGED}",
        "/* */" + FORGED.replace("schedule.fired", "sch\\u0065dule.fired"),
        FORGED.replace("schedule.fired", "schedule\\x2efired"),
        FORGED.replace("schedule.fired", "schedule\\u{2e}fired"),
        FORGED.replace("schedule.fired", "schedule\\u{00000000000000002E}fired"),
        FORGED.replace("schedule.fired", "schedule\\56fired"),
        FORGED.replace("schedule.fired", "schedule\\.fired"),
        FORGED.replace("schedule.fired", "schedule.\\\nfired"),
        FORGED.replace("schedule.fired", "schedule.\\\r\nfired"),
        f")]}}',\n{FORGED}",
        f'{{"deep":{"[" * 100_000}{"]" * 100_000},{FORGED[1:]}',
        FORGED.encode("utf-16-le").decode(),
        FORGED.encode("utf-16-be").decode(),
        FORGED.encode("utf-32-le").decode(),
    ],
    ids=[
        "object", "upper case", "text", "spaces", "byte order mark", "escaped value", "escaped name", "twice, the last",
        "twice, the first", "something after it", "not quite JSON", "a comment before it",
        "a line of comment before it", "a comment of a shell's before it", "a comment, and an escaped value", "escaped by \\x",
        "escaped by braces", "escaped by long braces", "escaped by octal", "escaped though it need not be", "a line that goes on",
        "a line that goes on, as on Windows", "what keeps scripts from it", "deep", "two bytes",
        "two bytes turned", "four bytes",
    ],
)  # fmt: skip
async def test_a_raw_body_that_could_pass_for_our_own_words_is_not_signed(deliverer: HttpDeliverer, payload: object) -> None:
    async with Sink(answers(200)) as sink:
        outcome = await deliverer.deliver(a_delivery(payload=payload), HttpTarget(sink.url, body="raw"))
        assert (outcome.verdict, sink.connections) == ("give_up", 0)
        assert "change its type, or send it with body='json'" in (outcome.detail or "")
        inside = await deliverer.deliver(a_delivery(payload=payload), HttpTarget(sink.url))
        assert inside.verdict == "delivered"


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "schedule.changed"},
        {"event": {"type": "schedule.fired"}},
        {"note": "schedule.fired", "path": "C:\\users"},
        [an_envelope("victim")],
        "schedule.fired",
        '"schedule.fired"',
        '{"type": "else", "text": "\\u00fc"}',
        "{\\rtf1 \\u252?}",
        "{\\u{ffffffff}}",
        "we use schedule.fired, and nothing else",
        f"[{FORGED}]",
        "a\0b",
    ],
    ids=repr,
)
async def test_a_raw_body_that_only_speaks_of_fires_is_sent(deliverer: HttpDeliverer, payload: object) -> None:
    async with Sink(answers(200)) as sink:
        outcome = await deliverer.deliver(a_delivery(payload=payload), HttpTarget(sink.url, body="raw"))
    assert outcome.verdict == "delivered"


async def test_the_targets_own_headers_are_sent_unsealed(deliverer: HttpDeliverer, signing: Signing) -> None:
    async with Sink(answers(200)) as sink:
        target = HttpTarget(sink.url, headers={"authorization": "•••"}, sealed="u1=authorization=Bearer top-secret-token")
        await deliverer.deliver(DELIVERY, target)
    assert sink.received[0].headers["authorization"] == "Bearer top-secret-token"
    assert signing.asked[0].headers == {"authorization": "Bearer top-secret-token"}  # and so a secret of its own is readable


async def test_the_targets_own_headers_come_before_our_defaults(deliverer: HttpDeliverer) -> None:
    async with Sink(answers(200)) as sink:
        await deliverer.deliver(DELIVERY, HttpTarget(sink.url, headers={"User-Agent": "mine", "accept-encoding": "br"}))
    names = [name.lower() for name in sink.received[0].headers]
    assert len(names) == len(set(names))
    assert {"mine", "br"} <= set(sink.received[0].headers.values())


async def test_no_header_of_a_target_takes_the_place_of_ours(deliverer: HttpDeliverer) -> None:
    async with Sink(answers(200)) as sink:
        target = HttpTarget(sink.url)
        force_setattr(target, "headers", {"webhook-id": "forged", "tickler-owner": "forged"})  # which it refuses by itself
        await deliverer.deliver(DELIVERY, target)
    (received,) = sink.received
    assert (received.headers["webhook-id"], received.headers["tickler-owner"]) == ("fire_7d1f", "u1")


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("user-42", "user-42"),
        ("team/a:b@c.example", "team/a:b@c.example"),
        ("100%", "100%25"),
        ("a b", "a%20b"),
        (" both ends ", "%20both%20ends%20"),
        ("Zoë", "Zo%C3%AB"),
        ("日本", "%E6%97%A5%E6%9C%AC"),
        ("🦥", "%F0%9F%A6%A5"),
        ('"<x>\\', "%22%3Cx%3E%5C"),
        ("ü" * 256, "%C3%BC" * 256),
    ],
)
async def test_any_owner_and_key_survive_the_way(deliverer: HttpDeliverer, name: str, sent: str) -> None:
    async with Sink(answers(200)) as sink:
        outcome = await deliverer.deliver(a_delivery(owner=name, key=name[::-1]), HttpTarget(sink.url))
    assert outcome.verdict == "delivered"
    headers = sink.received[0].headers
    assert headers["tickler-owner"] == sent
    assert unquote(headers["tickler-owner"]) == name
    assert unquote(headers["tickler-key"]) == name[::-1]
    data = msgspec.json.decode(sink.received[0].body)["data"]
    assert (data["owner"], data["key"]) == (name, name[::-1])


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_a_name_in_a_header_is_plain_text_that_reads_back(name: str) -> None:
    quoted = http._quoted(name)
    assert unquote(quoted) == name
    assert quoted.isascii()
    assert quoted.isprintable()
    assert " " not in quoted


async def test_connections_are_kept(deliverer: HttpDeliverer) -> None:
    async with Sink(answers(200, b"fine")) as sink:
        for _ in range(5):
            await deliverer.deliver(DELIVERY, HttpTarget(sink.url))
        assert (sink.connections, len(sink.received)) == (1, 5)


async def test_many_are_delivered_at_once(deliverer: HttpDeliverer) -> None:
    async with Sink(answers(200, b"fine")) as sink:
        deliveries = [a_delivery(payload=number) for number in range(200)]
        outcomes = await asyncio.gather(*(deliverer.deliver(each, HttpTarget(sink.url)) for each in deliveries))
    assert {outcome.verdict for outcome in outcomes} == {"delivered"}
    payloads = [msgspec.json.decode(each.body)["data"]["payload"] for each in sink.received]
    assert sorted(payloads) == list(range(200))


async def test_cookies_of_one_receiver_are_not_sent_again(deliverer: HttpDeliverer) -> None:
    async with Sink(answers(200, set_cookie="session=1; path=/")) as sink:
        for _ in range(2):
            await deliverer.deliver(DELIVERY, HttpTarget(f"http://receiver.example:{sink.port}/"))
    assert len(sink.received) == 2
    assert [name for each in sink.received for name in each.headers if name.lower() == "cookie"] == []


async def test_proxies_of_the_environment_are_not_used(deliverer: HttpDeliverer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Sink(answers(200)) as proxy, Sink(answers(200)) as sink:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert (await deliverer.deliver(DELIVERY, HttpTarget(sink.url))).verdict == "delivered"
    assert (proxy.connections, sink.connections) == (0, 1)


async def test_a_deliverer_that_is_not_open_says_so(signing: Signing) -> None:
    deliverer = HttpDeliverer(AddressGuard(), signing, unseal, ManualClock(NOW_MS))
    with pytest.raises(RuntimeError, match="not open: await open"):
        await deliverer.deliver(DELIVERY, HttpTarget("https://example.org"))
    await deliverer.close()


async def test_closing_closes_the_resolver(deliverer: HttpDeliverer, resolver: ScriptedResolver) -> None:
    await deliverer.close()
    assert resolver.closed


# What an answer means

DELIVERED = [200, 201, 202, 203, 204, 205, 206, 226, 299]
GIVE_UP = [413, 414, 415, 422, 431]
RETRY = [
    *(300, 301, 302, 303, 304, 305, 307, 308, 399),
    *(400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 411, 412, 416, 417, 418, 421, 423, 425, 426, 428, 429, 451, 499),
    *(500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 599, 999),
]


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        *((status, "delivered") for status in DELIVERED),
        *((status, "give_up") for status in GIVE_UP),
        *((status, "retry") for status in RETRY),
        (410, "gone"),
    ],
)
async def test_a_status_has_its_verdict(deliverer: HttpDeliverer, status: int, verdict: str) -> None:
    outcome = await outcome_of(deliverer, answers(status))
    assert (outcome.verdict, outcome.status, outcome.duration_ms) == (verdict, status, 0)
    assert (outcome.detail is None) == (verdict == "delivered")
    assert outcome.retry_after_ms is None
    if outcome.detail is not None:
        assert outcome.detail.startswith(f"answered {status}")
        assert "Whatever" not in outcome.detail  # the reason that was sent is anybody's text


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(500, "give_up"), (404, "give_up"), (429, "give_up"), (422, "give_up"), (410, "gone"), (200, "delivered")],
)
async def test_a_receiver_can_ask_for_no_more_attempts(deliverer: HttpDeliverer, status: int, verdict: str) -> None:
    outcome = await outcome_of(deliverer, answers(status, webhook_delivery="Abort-Message"))
    assert outcome.verdict == verdict
    if verdict == "give_up":
        assert outcome.detail is not None
        assert outcome.detail.endswith("and asked for no retries")


@pytest.mark.parametrize("status", [302, 400, 404, 409, 429, 500, 503])
async def test_a_receiver_is_left_alone_as_long_as_it_asks(deliverer: HttpDeliverer, status: int) -> None:
    outcome = await outcome_of(deliverer, answers(status, retry_after="120"))
    assert (outcome.verdict, outcome.retry_after_ms) == ("retry", 120_000)


@pytest.mark.parametrize("status", [200, 410, 413])
async def test_where_there_is_no_next_attempt_it_is_not_put_off(deliverer: HttpDeliverer, status: int) -> None:
    assert (await outcome_of(deliverer, answers(status, retry_after="120"))).retry_after_ms is None


HTTP_NOW = datetime.fromtimestamp(NOW_MS // 1000, UTC)


@pytest.mark.parametrize(
    ("text", "retry_after_ms"),
    [
        ("0", 0),
        ("1", 1_000),
        (" 30 ", 30_000),
        ("0030", 30_000),
        ("86400", MAX_HEADER_MS),
        ("86401", MAX_HEADER_MS),
        ("9" * 5_000, MAX_HEADER_MS),
        (f"{HTTP_NOW + timedelta(minutes=2):%a, %d %b %Y %H:%M:%S GMT}", 120_000 - 123),
        (f"{HTTP_NOW + timedelta(minutes=2):%A, %d-%b-%y %H:%M:%S GMT}", 120_000 - 123),
        (f"{HTTP_NOW + timedelta(minutes=2):%a %b %d %H:%M:%S %Y}", 120_000 - 123),
        (f"{HTTP_NOW + timedelta(hours=1):%a, %d %b %Y %H:%M:%S} -0000", 3_600_000 - 123),
        (f"{HTTP_NOW + timedelta(days=400):%a, %d %b %Y %H:%M:%S GMT}", MAX_HEADER_MS),
        (f"{HTTP_NOW - timedelta(days=1):%a, %d %b %Y %H:%M:%S GMT}", 0),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("1.5", None),
        ("1e3", None),
        ("٣", None),
        ("soon", None),
        ("120, 240", None),
        ("Thu, 99 May 2026 20:26:40 GMT", None),
        ("Thu, 28 May 99999 20:26:40 GMT", None),
        ("Thu, 28 May 99999999999999999999 20:26:40 GMT", None),
        ("Thu, 28 May 2026 20:26:40 +99999999999", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_else_nothing(text: str | None, retry_after_ms: int | None) -> None:
    assert read_retry_after(text, NOW_MS) == retry_after_ms


@given(st.text() | st.text("0123456789 ,:-+GMThuMay", max_size=40))
def test_no_retry_after_is_too_strange(text: str) -> None:
    retry_after_ms = read_retry_after(text, NOW_MS)
    assert retry_after_ms is None or 0 <= retry_after_ms <= MAX_HEADER_MS


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b"", None),
        (b"\0\0", None),
        (b"thank you", "thank you"),
        ("Grüße".encode(), "Grüße"),
        (b"a\0b", "ab"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"x" * 2_048, "x" * 2_048),
        (b"x" * 2_049, "x" * 2_048),
        (b"x" * 100_000, "x" * 2_048),
        (b"\xff" * 2_048, "\ufffd" * 682),
        ("ü".encode() * 2_000, "ü" * 1_024),
        (b"x" + "ü".encode() * 2_000, "x" + "ü" * 1_023),
    ],
    ids=lambda value: repr(value)[:20],
)
@pytest.mark.parametrize("status", [200, 500])
async def test_the_beginning_of_an_answer_is_kept_as_text(
    deliverer: HttpDeliverer, status: int, sent: bytes, kept: str | None
) -> None:
    outcome = await outcome_of(deliverer, answers(status, sent))
    assert outcome.answer == kept
    assert len((kept or "").encode()) <= 2_048


async def test_an_answer_in_pieces_is_put_together(deliverer: HttpDeliverer) -> None:
    chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
    assert (await outcome_of(deliverer, sends(chunks))).answer == "abcdefg"


async def test_an_answer_that_ends_with_the_connection_is_read(deliverer: HttpDeliverer) -> None:
    outcome = await outcome_of(deliverer, sends_and_closes(b"HTTP/1.0 200 OK\r\n\r\nuntil the end"))
    assert (outcome.verdict, outcome.answer) == ("delivered", "until the end")


async def test_nothing_is_decompressed(deliverer: HttpDeliverer) -> None:
    bomb = gzip.compress(bytes(10 * MEGABYTE))
    outcome = await outcome_of(deliverer, answers(200, bomb, content_encoding="gzip"))
    assert outcome.verdict == "delivered"
    assert (outcome.answer or "").startswith("\x1f\ufffd\x08")  # as it came: of no use to people, and of no harm


async def test_headers_that_a_receiver_sends_back_are_not_kept(deliverer: HttpDeliverer) -> None:
    secret = "Bearer sk_live_1234567890"
    echo = b"you sent authorization: Bearer sk_live_1234567890, and sk_live_1234567890 again, as text/x-odd " + b"." * 1_940
    async with Sink(answers(500, echo + b"sk_live_1234567890")) as sink:
        target = HttpTarget(sink.url, headers={"authorization": secret, "content-type": "text/x-odd"})
        outcome = await deliverer.deliver(DELIVERY, target)
    assert outcome.answer is not None
    assert outcome.answer.startswith("you sent authorization: •••, and ••• again, as text/x-odd ...")
    assert "sk_live" not in repr(outcome)  # nor the part of it where the answer was cut off


AWKWARD = 'to"ken\\with/slash+and=more&1234'


@pytest.mark.parametrize(
    "echo",
    [
        AWKWARD,
        json.dumps(AWKWARD),
        json.dumps(AWKWARD).replace("/", r"\/"),
        quote(AWKWARD),
        quote(AWKWARD, safe=""),
        quote(AWKWARD, safe="").replace("%2F", "%2f").replace("%3D", "%3d").replace("%2B", "%2b").replace("%5C", "%5c"),
        quote_plus(f"Bearer {AWKWARD}"),
        html.escape(AWKWARD),
    ],
    ids=["plain", "JSON", "JSON of PHP", "path", "query", "query in lower case", "form", "HTML"],
)
@pytest.mark.parametrize("cut", [False, True])
async def test_headers_that_come_back_in_another_notation_are_not_kept_either(
    deliverer: HttpDeliverer, echo: str, cut: bool
) -> None:
    before = "." * (2_048 - 20) if cut else "you sent "
    async with Sink(answers(500, f"{before}{echo}.".encode())) as sink:
        outcome = await deliverer.deliver(DELIVERY, HttpTarget(sink.url, headers={"authorization": f"Bearer {AWKWARD}"}))
    assert outcome.answer is not None
    assert "ken" not in outcome.answer
    assert "•••" in outcome.answer


@pytest.mark.parametrize("secret", ["s" * 8_000, "s" * 7_999 + "/", " ".join(f"{number:08}" for number in range(880))])
@pytest.mark.parametrize("answer", [b"s" * 2_048, b"s" * 2_047 + b"x", b"s", b"0000" * 512])
def test_looking_for_headers_in_an_answer_takes_no_longer_for_longer_ones(secret: str, answer: bytes) -> None:
    started = time.process_time()
    for _ in range(20):
        http._shown(answer, {"x-token": secret})
    assert time.process_time() - started < 1


async def test_a_redirect_is_not_followed(deliverer: HttpDeliverer) -> None:
    async with Sink(answers(200)) as inside:
        for status in (301, 302, 303, 307, 308):
            outcome = await outcome_of(deliverer, answers(status, location=inside.url))
            assert outcome.verdict == "retry"
            assert outcome.detail is not None
            assert "redirects are not followed: use the URL that it redirects to" in outcome.detail
        assert (inside.connections, inside.received) == (0, [])


# When there is no answer


async def test_a_refused_address_is_given_up_and_says_what_to_do(deliverer: HttpDeliverer) -> None:
    for url, what in (("http://10.0.0.1/", "10.0.0.1 is private"), ("http://private.example/", "private.example resolves to")):
        outcome = await deliverer.deliver(DELIVERY, HttpTarget(url))
        assert (outcome.verdict, outcome.status) == ("give_up", 0)
        assert what in (outcome.detail or "")
        assert "TICKLER_ALLOW_NETWORKS" in (outcome.detail or "")
        assert ("10.0.0.1" in (outcome.detail or "")) == ("10.0.0.1" in url), "where names lead inside is not told"


async def test_a_name_that_is_not_found_is_tried_again(deliverer: HttpDeliverer) -> None:
    outcome = await deliverer.deliver(DELIVERY, HttpTarget("http://unknown.example/"))
    assert (outcome.verdict, outcome.status) == ("retry", 0)
    assert outcome.detail == "could not resolve unknown.example: Name or service not known"


async def test_a_name_that_is_not_looked_up_in_time_is_tried_again(signing: Signing, monkeypatch: pytest.MonkeyPatch) -> None:
    answers_now = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *asked, **more: answers_now.wait(20) and [])
    slow = HttpDeliverer(AddressGuard(), signing, unseal, ManualClock(NOW_MS), resolver=SystemResolver(timeout_s=0.05))
    await slow.open()
    outcome = await slow.deliver(DELIVERY, HttpTarget("http://tarpit.example/"))
    answers_now.set()
    await slow.close()
    assert (outcome.verdict, outcome.detail) == ("retry", "no address for tarpit.example within 0.05 s")


async def test_names_are_looked_up_although_all_threads_of_the_event_loop_are_taken(signing: Signing) -> None:
    loop, taken = asyncio.get_running_loop(), threading.Event()
    deliverer = HttpDeliverer(AddressGuard(["127.0.0.0/8", "::1"]), signing, unseal, ManualClock(NOW_MS))
    with ThreadPoolExecutor(max_workers=1) as pool:
        loop.set_default_executor(pool)
        busy = loop.run_in_executor(None, taken.wait, 20)
        try:
            await deliverer.open()
            async with Sink(answers(200)) as sink:
                outcome = await deliverer.deliver(DELIVERY, HttpTarget(sink.url.replace("127.0.0.1", "localhost")))
            await deliverer.close()
        finally:
            taken.set()
            await busy
    assert (outcome.verdict, outcome.detail) == ("delivered", None)


async def test_a_refused_connection_is_tried_again(deliverer: HttpDeliverer) -> None:
    async with Sink(answers(200)) as sink:
        port = sink.port
    outcome = await deliverer.deliver(DELIVERY, HttpTarget(f"http://127.0.0.1:{port}/?token=secret"))
    assert (outcome.verdict, outcome.status) == ("retry", 0)
    assert outcome.detail == f"could not connect to 127.0.0.1 port {port}: connection refused"


async def test_a_reset_connection_is_tried_again(deliverer: HttpDeliverer) -> None:
    outcome = await outcome_of(deliverer, resets)
    assert (outcome.verdict, outcome.status) == ("retry", 0)
    assert outcome.detail == "the connection was lost before the answer: connection reset by peer"


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\ncontent-le"])
async def test_a_connection_that_ends_early_is_tried_again(deliverer: HttpDeliverer, data: bytes) -> None:
    outcome = await outcome_of(deliverer, sends_and_closes(data))
    assert (outcome.verdict, outcome.status) == ("retry", 0)
    assert outcome.detail == "the receiver closed the connection without an answer"


async def test_an_answer_that_breaks_off_has_been_given(deliverer: HttpDeliverer) -> None:
    outcome = await outcome_of(deliverer, sends_and_closes(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"))
    assert (outcome.verdict, outcome.status) == ("delivered", 200)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"220 mail ESMTP\r\n\r\n",
        b"\0\1\2\3\r\n\r\n",
        b"<html>\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n",
        b"authorization: top-secret-token\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_tried_again_and_not_repeated(deliverer: HttpDeliverer, data: bytes) -> None:
    outcome = await outcome_of(deliverer, sends_and_closes(data))
    assert (outcome.verdict, outcome.status) == ("retry", 0)
    assert outcome.detail == "the answer is not valid HTTP"


async def test_silence_is_tried_again_when_the_time_is_over(deliverer: HttpDeliverer) -> None:
    outcome = await outcome_of(deliverer, says_nothing, a_delivery(timeout_s=0.25))
    assert (outcome.verdict, outcome.status) == ("retry", 0)
    assert outcome.detail == "no answer within 0.25 s"


async def test_an_attempt_that_is_cancelled_leaves_no_connection(deliverer: HttpDeliverer) -> None:
    async with Sink(drips(HEAD, 0.01)) as sink:
        attempt = asyncio.ensure_future(deliverer.deliver(DELIVERY, HttpTarget(sink.url)))
        while not sink.received:
            await asyncio.sleep(0)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        await asyncio.wait_for(sink.ended.wait(), 5)


async def test_an_early_refusal_of_a_large_body_is_heard(deliverer: HttpDeliverer) -> None:
    """A receiver that answers when it has seen the length, and reads on."""
    outcome = await outcome_of(deliverer, answers(413, b"too much"), a_delivery(payload="x" * 250_000))
    assert (outcome.verdict, outcome.status, outcome.answer) == ("give_up", 413, "too much")


# TLS


class Authority:
    """Makes certificates that only the test trusts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def server(self, *names: str, days: int = 1) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        now = datetime.now(UTC)
        first, last = now - timedelta(days=2), now + timedelta(days=days)
        builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), first, last)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        plain = serialization.NoEncryption()
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        self.file = self._folder / "server.pem"
        self.file.write_bytes(private + certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file)
        return context

    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.file))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def over_tls(deliverer: HttpDeliverer, server: ssl.SSLContext, name: str = "receiver.example") -> tuple[Outcome, Sink]:
    async with Sink(answers(200), tls=server) as sink:
        return await deliverer.deliver(DELIVERY, HttpTarget(f"https://{name}:{sink.port}/hook")), sink


async def test_a_certificate_is_checked_for_the_name_in_the_url(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = authority.server("receiver.example")
    monkeypatch.setattr("tickler.deliver.http_client.tls.verified_context", authority.trusted)
    async with Sink(answers(200, b"x" * 2_000), tls=server) as sink:
        for _ in range(50):
            outcome = await deliverer.deliver(DELIVERY, HttpTarget(f"https://receiver.example:{sink.port}/hook"))
            assert (outcome.verdict, outcome.answer) == ("delivered", "x" * 2_000)
        assert sink.connections == 1
        assert sink.received[0].headers["Host"] == f"receiver.example:{sink.port}"
    outcome, sink = await over_tls(deliverer, server, "other.example")
    assert (outcome.verdict, outcome.status, sink.received) == ("retry", 0, [])
    assert "the certificate of other.example was rejected: Hostname mismatch" in (outcome.detail or "")


async def test_a_certificate_that_nobody_vouches_for_is_not_accepted(deliverer: HttpDeliverer, authority: Authority) -> None:
    outcome, sink = await over_tls(deliverer, authority.server("receiver.example"))
    assert (outcome.verdict, outcome.status, sink.received) == ("retry", 0, [])
    assert outcome.detail == "the certificate of receiver.example was rejected: self-signed certificate"


async def test_a_certificate_that_ran_out_is_not_accepted(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = authority.server("receiver.example", days=-1)
    monkeypatch.setattr("tickler.deliver.http_client.tls.verified_context", authority.trusted)
    outcome, sink = await over_tls(deliverer, server)
    assert sink.received == []
    assert outcome.detail == "the certificate of receiver.example was rejected: certificate has expired"


async def test_a_receiver_without_tls_says_what_is_wrong(deliverer: HttpDeliverer) -> None:
    async with Sink(sends(b"HTTP/1.1 400 Bad Request\r\n\r\n"), reads=False) as sink:
        outcome = await deliverer.deliver(DELIVERY, HttpTarget(sink.url.replace("http:", "https:")))
    assert (outcome.verdict, outcome.status) == ("retry", 0)
    assert outcome.detail is not None
    assert outcome.detail.startswith("TLS with 127.0.0.1 failed: ")


async def test_a_connection_that_never_comes_about_is_not_waited_for(
    deliverer: HttpDeliverer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "CONNECT_TIMEOUT_S", 0.25)
    async with Sink(says_nothing, reads=False) as sink:
        delivery = a_delivery(timeout_s=60.5)
        outcome = await deliverer.deliver(delivery, HttpTarget(sink.url.replace("http:", "https:")))
    assert (outcome.verdict, outcome.detail) == ("retry", "could not connect to 127.0.0.1 within 0.25 s")


# Bad manners

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"


async def a_hundred_megabytes(writer: asyncio.StreamWriter) -> None:
    writer.write(CHUNKED)
    for _ in range(1_600):
        writer.write(CHUNK)
        await writer.drain()
    writer.write(b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("behave", "verdict", "status"),
    [
        (sends_for_ever(HEAD + b"\r\n", b"x" * 65_536), "delivered", 200),
        (sends_for_ever(CHUNKED, CHUNK), "delivered", 200),
        (sends_for_ever(CHUNKED, b"1\r\nx\r\n" * 10_000), "delivered", 200),
        (sends_for_ever(HEAD.replace(b"200", b"503") + b"\r\n", b"x" * 65_536), "retry", 503),
        (sends_for_ever(HEAD + b"content-length: 99999999999999\r\n\r\n", b"x" * 65_536), "delivered", 200),
        (a_hundred_megabytes, "delivered", 200),
        (drips(HEAD + b"content-length: 100000\r\n\r\n", 0.05), "delivered", 200),
        (drips(HEAD.replace(b"200", b"410") + b"\r\n", 0.05), "gone", 410),
        (sends_much(HEAD + b"x: ", 10, b"\r\ncontent-length: 0\r\n\r\n"), "retry", 0),
        (sends_for_ever(HEAD + b"x: ", b"y" * 65_536), "retry", 0),
        (sends_for_ever(HEAD, b"x: y\r\n" * 10_000), "retry", 0),
        (sends_for_ever(HEAD, b"x-%d: y\r\n" % 1), "retry", 0),
        (sends_for_ever(b"HTTP/1.1 200 ", b"x" * 65_536), "retry", 0),
        (sends_for_ever(b"", b"garbage" * 10_000), "retry", 0),
        (drips(HEAD, 0.05), "retry", 0),
        (sends_for_ever(CHUNKED + b"1;", b"e" * 65_536), "delivered", 200),
        # A status whose headers came whole counts, however wrong what follows is.
        (sends_for_ever(CHUNKED, b"1" * 65_536), "delivered", 200),
        (sends_much(CHUNKED + b"f" * 1_000, 10, b"\r\n"), "delivered", 200),
        (sends(CHUNKED + b"zz\r\n"), "delivered", 200),
        (sends_for_ever(CHUNKED + b"0\r\nt: ", b"r" * 65_536), "delivered", 200),
        (sends(b"HTTP/1.1 204 No Content\r\n\r\nand yet a body"), "delivered", 204),
        (sends(b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello"), "delivered", 204),
        (sends(b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + b"zz\r\n"), "delivered", 200),
        (sends(CHUNKED.replace(b"200", b"503") + b"zz\r\n"), "retry", 503),
        (sends(CHUNKED.replace(b"200", b"410") + b"zz\r\n"), "gone", 410),
        (sends(HEAD + b"no header at all\r\n\r\n"), "retry", 0),
        (sends(HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nokk"), "retry", 0),
        (sends(b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n" + b"x" * MEGABYTE), "retry", 101),
        (sends_for_ever(b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n", b"x" * 65_536), "retry", 101),
        (sends_for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "retry", 0),
        (sends_for_ever(b"", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 500), "retry", 0),
        (sends(HEAD + b"content-length: 2\r\n\r\nok" + b"HTTP/1.1 500 Other\r\ncontent-length: 0\r\n\r\n"), "delivered", 200),
    ],
    ids=[
        "endless body", "endless chunks", "endless tiny chunks", "endless body of a 503", "less than was promised", "100 MB",
        "a byte at a time", "a byte at a time after a 410", "10 MB header", "endless header", "endless headers",
        "endless headers slowly", "endless reason", "endless garbage", "slow headers", "endless chunk extension",
        "endless chunk size", "10 MB chunk size", "chunk size that is none", "endless trailer", "204 with a body",
        "204 with a body that is announced", "bad chunk after a 100", "bad chunk of a 503", "bad chunk of a 410",
        "headers that do not read", "headers that contradict each other", "websocket", "another protocol",
        "100 Continue for ever", "early hints for ever", "two answers",
    ],
)  # fmt: skip
async def test_bad_manners_cost_little_time_and_memory_and_change_no_verdict(
    deliverer: HttpDeliverer, behave: Behaviour, verdict: str, status: int
) -> None:
    async with Sink(behave) as sink:
        target = HttpTarget(sink.url)
        started = time.monotonic()
        tracemalloc.start()
        try:
            outcome = await deliverer.deliver(a_delivery(timeout_s=1.0), target)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (outcome.verdict, outcome.status) == (verdict, status)
        assert time.monotonic() - started < 5
        assert peak < 4 * MEGABYTE
        assert len((outcome.answer or "").encode()) <= 2_048


async def test_a_connection_with_more_to_come_is_closed_and_not_used_again(deliverer: HttpDeliverer) -> None:
    async with Sink(sends_for_ever(HEAD + b"content-length: 9999999\r\n\r\n", b"x" * 65_536)) as sink:
        for _ in range(2):
            assert (await deliverer.deliver(DELIVERY, HttpTarget(sink.url))).verdict == "delivered"
        assert sink.connections == 2
        await asyncio.wait_for(sink.ended.wait(), 5)


async def test_a_second_answer_is_not_taken_for_that_of_the_next(deliverer: HttpDeliverer) -> None:
    two = HEAD + b"content-length: 2\r\n\r\nok" + b"HTTP/1.1 500 Other\r\ncontent-length: 0\r\n\r\n"
    async with Sink(sends(two)) as sink:
        for _ in range(3):
            assert (await deliverer.deliver(DELIVERY, HttpTarget(sink.url))).status == 200


@pytest.fixture
def kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that connections are not closed just because of their age."""
    monkeypatch.setattr("tickler.deliver.http_client.pool.KEEP_ALIVE_S", 60)


@pytest.mark.parametrize("stale", [HEAD + b"content-length: 0\r\n\r\n", b"H", b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n"])
async def test_an_answer_that_nobody_asked_for_is_not_taken_for_that_of_the_next(
    kept_for_long: None, deliverer: HttpDeliverer, stale: bytes
) -> None:
    """As of a server that tells a connection that it was idle for too long."""
    now = asyncio.Event()
    async with Sink(answers_and_then(HEAD + b"content-length: 2\r\n\r\nok", stale, now)) as sink:
        for connection in (1, 2):
            outcome = await deliverer.deliver(DELIVERY, HttpTarget(sink.url))
            assert (outcome.status, outcome.answer, sink.connections) == (200, "ok", connection)
            now.set()
            await asyncio.wait_for(sink.ended.wait(), 5)  # it is dropped as soon as something comes
            now.clear()
            sink.ended.clear()


async def test_the_rest_of_an_answer_is_not_waited_for_longer_than_a_second(
    deliverer: HttpDeliverer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "ANSWER_TIMEOUT_S", 0.1)
    started = time.monotonic()
    outcome = await outcome_of(deliverer, sends(HEAD + b"content-length: 100\r\n\r\nfirst half"), a_delivery(timeout_s=60))
    assert (outcome.verdict, outcome.answer) == ("delivered", "first half")
    assert time.monotonic() - started < 5


async def test_a_status_that_came_in_time_counts_although_the_rest_did_not(deliverer: HttpDeliverer) -> None:
    outcome = await outcome_of(deliverer, sends(HEAD + b"content-length: 100\r\n\r\nfirst half"), a_delivery(timeout_s=0.3))
    assert (outcome.verdict, outcome.answer) == ("delivered", "first half")


async def test_who_waits_no_longer_than_the_timeout_hears_of_a_status_that_came(deliverer: HttpDeliverer) -> None:
    async with asyncio.timeout(0.5):
        outcome = await outcome_of(deliverer, drips(HEAD + b"content-length: 100\r\n\r\n", 0.05), a_delivery(timeout_s=0.5))
    assert (outcome.verdict, outcome.status) == ("delivered", 200)


@pytest.mark.parametrize("flood", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"])
async def test_those_with_bad_manners_do_not_hold_up_the_others(deliverer: HttpDeliverer, flood: bytes) -> None:
    """Interim answers are quick to send and slow to read: too many of them, and the connection is over."""
    started = time.monotonic()
    async with Sink(sends_for_ever(b"", flood * 1_000)) as bad, Sink(answers(200)) as good:
        hostile = [asyncio.ensure_future(deliverer.deliver(a_delivery(timeout_s=60), HttpTarget(bad.url))) for _ in range(10)]
        outcomes = [await deliverer.deliver(DELIVERY, HttpTarget(good.url)) for _ in range(50)]
        refused = await asyncio.gather(*hostile)
    assert {outcome.verdict for outcome in outcomes} == {"delivered"}
    assert {(outcome.verdict, outcome.detail) for outcome in refused} == {("retry", "received more than 64 KB without an answer")}
    assert time.monotonic() - started < 20


async def test_what_tls_keeps_to_itself_counts_as_well(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = authority.server("receiver.example")
    server.num_tickets = 1_000  # sent after the handshake, some 250 bytes each, and nothing of it is HTTP
    monkeypatch.setattr("tickler.deliver.http_client.tls.verified_context", authority.trusted)
    async with Sink(says_nothing, tls=server) as sink:
        outcome = await deliverer.deliver(DELIVERY, HttpTarget(f"https://receiver.example:{sink.port}/"))
    assert (outcome.verdict, outcome.detail) == ("retry", "received more than 64 KB without an answer")


async def test_who_asks_for_new_keys_without_end_is_not_heard_to_the_end(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each costs this side more than the other, and is answered, behind the back of HTTP: that makes no room for the next."""
    converse = asks_for_new_keys(authority.server("receiver.example"), tmp_path / "keys", times=5_000)
    monkeypatch.setattr("tickler.deliver.http_client.tls.verified_context", authority.trusted)
    async with await asyncio.start_server(converse, "127.0.0.1", 0) as receiver:
        url = f"https://receiver.example:{receiver.sockets[0].getsockname()[1]}/"
        outcome = await deliverer.deliver(DELIVERY, HttpTarget(url))
    assert (outcome.verdict, outcome.detail) == ("retry", "received more than 64 KB without an answer")


async def test_a_few_interim_answers_do_no_harm(deliverer: HttpDeliverer) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" + b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 20
    outcome = await outcome_of(deliverer, sends(interim + HEAD + b"content-length: 2\r\n\r\nok"))
    assert (outcome.verdict, outcome.status, outcome.answer) == ("delivered", 200, "ok")


@pytest.mark.parametrize("payload", [None, "x" * 200_000])
async def test_what_may_come_is_counted_for_each_answer_anew(deliverer: HttpDeliverer, payload: object) -> None:
    async with Sink(answers(200, b"x" * 2_000)) as sink:
        for _ in range(50):
            outcome = await deliverer.deliver(a_delivery(payload=payload), HttpTarget(sink.url))
            assert (outcome.verdict, outcome.answer) == ("delivered", "x" * 2_000)
        assert sink.connections == 1


@pytest.mark.parametrize(
    "behave",
    [
        sends(HEAD + b"x: " + b"y" * 9_000 + b"\r\ncontent-length: 0\r\n\r\n"),
        sends(b"HTTP/1.1 200 " + b"y" * 9_000 + b"\r\n\r\n"),
    ],
)
async def test_headers_that_are_too_long_are_told_from_what_is_not_http(deliverer: HttpDeliverer, behave: Behaviour) -> None:
    assert (await outcome_of(deliverer, behave)).detail == "the headers of the answer are too long"
