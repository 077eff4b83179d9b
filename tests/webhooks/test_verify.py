"""Receiving: what is proven to come from Tickler is told, and everything else is refused with a reason."""

from __future__ import annotations

import email.message
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from tickler.clock import ManualClock
from tickler.errors import InvalidInput, InvalidSignature
from tickler.model.delivery import Delivery
from tickler.model.fire import fire_id
from tickler.webhooks.envelope import envelope
from tickler.webhooks.signature import new_secret, sign
from tickler.webhooks.verify import Received, verify
from tickler.when import iso_utc

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
NOW_S = NOW_MS // 1000
CLOCK = ManualClock(NOW_MS)
NOMINAL_AT = NOW_MS - 60_250
SECRET, OTHER = new_secret(), new_secret()
OWNER, KEY = "ü1/a", "digest %2F 日本"
PAYLOAD = {"post": 7, "text": "hallo 🐌"}


def delivery(owner: str = OWNER, key: str = KEY, *, triggered: bool = False) -> Delivery:
    return Delivery(
        id=fire_id(owner, key, NOMINAL_AT, triggered=triggered),
        owner=owner,
        key=key,
        nominal_at=NOMINAL_AT,
        attempt=3,
        payload=PAYLOAD,
        target=None,
        timeout_s=30,
        started_at=NOW_MS,
    )


def signed(body: bytes, id: str, *secrets: str, at: int = NOW_S) -> dict[str, str]:
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": sign(secrets or (SECRET,), id, at, body),
    }


def told_in_headers(fire: Delivery) -> dict[str, str]:
    return {
        "tickler-owner": quote(fire.owner, safe=""),
        "tickler-key": quote(fire.key, safe=""),
        "tickler-nominal-at": iso_utc(fire.nominal_at),
        "tickler-attempt": str(fire.attempt),
    }


FIRE = delivery()
BODY = envelope(FIRE)
HEADERS = signed(BODY, FIRE.id)


def reason(body: bytes, headers: Mapping[str, str], secret: str = SECRET) -> str:
    with pytest.raises(InvalidSignature) as refused:
        verify(body, headers, secret, clock=CLOCK)
    assert str(refused.value) == f"{refused.value.reason}: {refused.value.remedy}"
    assert secret not in str(refused.value)
    return refused.value.reason


# What is told.


def test_a_json_body_tells_all_there_is_to_know() -> None:
    received = verify(BODY, HEADERS, SECRET, clock=CLOCK)
    assert received == Received(
        id=FIRE.id,
        timestamp_s=NOW_S,
        owner=OWNER,
        key=KEY,
        nominal_at=NOMINAL_AT,
        attempt=3,
        payload=PAYLOAD,
        body=BODY,
    )
    assert received.nominal == FIRE.nominal


def test_a_raw_body_is_handed_on_as_it_is_and_headers_tell_the_rest() -> None:
    for body in (b"", b"\x00\xff", b"[1]", b'{"type": "else"}', b"[" * 100_000):
        received = verify(body, signed(body, FIRE.id) | told_in_headers(FIRE), SECRET, clock=CLOCK)
        assert (received.owner, received.key, received.nominal_at, received.attempt) == (OWNER, KEY, NOMINAL_AT, 3)
        assert (received.payload, received.body) == (None, body)


def test_a_fire_that_a_person_triggered_is_received_like_any_other() -> None:
    fire = delivery(triggered=True)
    body = envelope(fire)
    assert verify(body, signed(body, fire.id), SECRET, clock=CLOCK).id == fire.id
    assert verify(b"raw", signed(b"raw", fire.id) | told_in_headers(fire), SECRET, clock=CLOCK).key == KEY


def test_an_instant_in_the_body_may_be_iso_and_fields_of_later_versions_are_passed_over() -> None:
    message = json.loads(BODY)
    message["data"] |= {"nominal_at": iso_utc(NOMINAL_AT), "mood": "good"}
    body = json.dumps(message | {"more": 1}).encode()
    assert verify(body, signed(body, FIRE.id), SECRET, clock=CLOCK).nominal_at == NOMINAL_AT


def test_what_another_sender_signed_with_the_same_secret_is_no_fire() -> None:
    """The example that Standard Webhooks publishes. Its id is made of no owner, key and instant, and so tells nothing of them."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    clock = ManualClock(1614265330_000)
    body, secret = b'{"test": 2432232314}', "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    with pytest.raises(InvalidSignature, match="webhook-id is not what Tickler sends"):
        verify(body, headers | told_in_headers(FIRE), secret, clock=clock)


# Headers, as frameworks have them.


def in_flask(headers: dict[str, str]) -> Mapping[str, str]:
    datastructures = pytest.importorskip("werkzeug.datastructures")
    environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    made: Mapping[str, str] = datastructures.EnvironHeaders(environ)
    return made


def in_django(headers: dict[str, str]) -> Mapping[str, str]:
    request = pytest.importorskip("django.http.request")
    environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    made: Mapping[str, str] = request.HttpHeaders(environ)
    return made


def in_starlette(headers: dict[str, str]) -> Mapping[str, str]:
    datastructures = pytest.importorskip("starlette.datastructures")
    made: Mapping[str, str] = datastructures.Headers(raw=[(name.encode(), value.encode()) for name, value in headers.items()])
    return made


def in_the_standard_library(headers: dict[str, str]) -> Mapping[str, str]:
    message = email.message.Message()
    for name, value in headers.items():
        message[name.title()] = value
    return message  # type: ignore[return-value]  # it is none, and quacks like one


@pytest.mark.parametrize(
    "framework",
    [
        in_flask,
        in_django,
        in_starlette,
        in_the_standard_library,
        CIMultiDict,
        dict,
        lambda headers: {name.title(): value for name, value in headers.items()},
        lambda headers: {name.upper(): value for name, value in headers.items()},
    ],
    ids=["flask", "django", "starlette", "http.server", "aiohttp", "dict", "Title-Case", "UPPER-CASE"],
)
def test_headers_are_found_in_any_case_in_any_mapping(framework: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
    everything = {"content-type": "text/plain", "host": "example.org"} | signed(b"raw", FIRE.id) | told_in_headers(FIRE)
    received = verify(b"raw", framework(everything), SECRET, clock=CLOCK)
    assert (received.id, received.owner, received.key) == (FIRE.id, OWNER, KEY)


# Secrets.


@pytest.mark.parametrize(
    "has",
    [[SECRET], [OTHER], [SECRET, OTHER], (OTHER, SECRET), SECRET, OTHER.removeprefix("whsec_")],
    ids=["the one", "the other", "both", "both the other way round", "a text", "without its prefix"],
)
def test_while_rotating_a_receiver_may_have_either_secret_or_both(has: str | list[str]) -> None:
    headers = signed(BODY, FIRE.id, SECRET, OTHER)
    assert verify(BODY, headers, has, clock=CLOCK).id == FIRE.id


def test_a_receiver_with_both_secrets_takes_what_was_signed_with_one() -> None:
    for secret in (SECRET, OTHER):
        assert verify(BODY, signed(BODY, FIRE.id, secret), [SECRET, OTHER], clock=CLOCK).id == FIRE.id


def test_signatures_of_unknown_versions_are_passed_over() -> None:
    good = HEADERS["webhook-signature"]
    for text in (f"v1a,{'x' * 86}== {good}", f"v2,abc {good} v1a,x", f"v1 {good}", f" {good} "):
        assert verify(BODY, HEADERS | {"webhook-signature": text}, SECRET, clock=CLOCK).id == FIRE.id
    signature = good.removeprefix("v1,")
    for text in (
        f"v1a,{signature}",
        f"v2,{signature}",
        signature,
        f"V1,{signature}",
        "v1,",
        "v1",
        "",
        ",",
        good[:-1],
        f"{good}=",
    ):
        assert reason(BODY, HEADERS | {"webhook-signature": text}) == "no signature matches"


@pytest.mark.parametrize("secret", [None, 5, b"whsec_", [], (), [None], "", "hunter2", ["hunter2"], {"a": 1}], ids=repr)
def test_what_is_no_secret_is_the_callers_mistake_and_not_the_senders(secret: object) -> None:
    with pytest.raises(InvalidInput, match=r"^secret: ") as refused:
        verify(BODY, HEADERS, secret, clock=CLOCK)  # type: ignore[arg-type]  # wrong types are the point
    assert "hunter2" not in str(refused.value)


# What is refused.


def test_another_secret_is_refused_and_the_remedy_names_what_it_may_be() -> None:
    with pytest.raises(InvalidSignature, match="is this the secret of that owner") as refused:
        verify(BODY, HEADERS, OTHER, clock=CLOCK)
    assert refused.value.reason == "no signature matches"


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_missing_header_is_named(name: str) -> None:
    assert reason(BODY, {each: value for each, value in HEADERS.items() if each != name}) == f"the header {name} is missing"


@pytest.mark.parametrize("name", ["tickler-owner", "tickler-key", "tickler-nominal-at", "tickler-attempt"])
def test_a_raw_body_without_its_headers_is_refused(name: str) -> None:
    headers = signed(b"raw", FIRE.id) | told_in_headers(FIRE)
    del headers[name]
    assert reason(b"raw", headers) == f"the header {name} is missing"


@pytest.mark.parametrize(
    "text", ["", "now", "-1", "1e9", "12.5", "+5", "٣٣٣٣٣٣٣٣٣٣", "9" * 5000, "0x10", "1 2"], ids=lambda t: t[:9]
)
def test_a_timestamp_that_is_none_is_refused(text: str) -> None:
    assert reason(BODY, HEADERS | {"webhook-timestamp": text}) == "the header webhook-timestamp is not what Tickler sends"


@pytest.mark.parametrize("off_s", [-301, 301, -86_400, 86_400])
def test_what_was_sent_more_than_five_minutes_from_now_is_refused(off_s: int) -> None:
    headers = signed(BODY, FIRE.id, at=NOW_S + off_s)
    with pytest.raises(InvalidSignature, match="check this machine's clock"):
        verify(BODY, headers, SECRET, clock=CLOCK)
    assert verify(BODY, headers, SECRET, clock=CLOCK, tolerance_s=abs(off_s)).id == FIRE.id


@pytest.mark.parametrize("off_s", [-300, 0, 300])
def test_what_was_sent_within_five_minutes_is_taken(off_s: int) -> None:
    assert verify(BODY, signed(BODY, FIRE.id, at=NOW_S + off_s), SECRET, clock=CLOCK).timestamp_s == NOW_S + off_s


def test_without_a_clock_it_is_this_machines() -> None:
    with pytest.raises(InvalidSignature, match="check this machine's clock"):
        verify(BODY, signed(BODY, FIRE.id, at=1_000_000_000), SECRET)


@pytest.mark.parametrize("tolerance_s", [-1, 1.5, True, None, "300"], ids=repr)
def test_a_tolerance_is_a_whole_number_of_seconds(tolerance_s: object) -> None:
    with pytest.raises(InvalidInput, match=r"^tolerance_s: "):
        verify(BODY, HEADERS, SECRET, tolerance_s=tolerance_s, clock=CLOCK)  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize("body", [BODY.decode(), json.loads(BODY), None, 5], ids=["str", "dict", "None", "int"])
def test_a_body_that_was_read_already_is_refused_with_what_to_pass(body: object) -> None:
    with pytest.raises(InvalidInput, match=r"the signature covers bytes: .*get_data"):
        verify(body, HEADERS, SECRET, clock=CLOCK)  # type: ignore[arg-type]  # wrong types are the point


def test_other_kinds_of_bytes_are_bytes() -> None:
    for body in (bytearray(BODY), memoryview(BODY)):
        assert verify(body, HEADERS, SECRET, clock=CLOCK).body == BODY  # type: ignore[arg-type]  # a kindness


@pytest.mark.parametrize("headers", [None, 5, "webhook-id", [("webhook-id", "x")]], ids=repr)
def test_headers_that_are_no_mapping_are_the_callers_mistake(headers: object) -> None:
    with pytest.raises(InvalidInput, match=r"^headers: "):
        verify(BODY, headers, SECRET, clock=CLOCK)  # type: ignore[arg-type]  # wrong types are the point


def test_a_header_given_as_a_list_is_named() -> None:
    headers = {**HEADERS, "webhook-id": [FIRE.id]}
    assert reason(BODY, headers) == "the header webhook-id is a list"  # type: ignore[arg-type]  # that is the point


# What is forged, with a signature that is good.


def test_a_body_that_speaks_of_another_fire_is_refused() -> None:
    body = envelope(delivery("victim"))
    assert reason(body, signed(body, FIRE.id)) == "the id in the body differs from webhook-id"


@pytest.mark.parametrize("changed", [{"owner": "victim"}, {"key": "payout"}, {"nominal_at": NOMINAL_AT + 1}], ids=str)
def test_a_raw_payload_cannot_pass_for_the_fire_of_somebody_else(changed: dict[str, object]) -> None:
    """With a secret that owners share, one of them could write a payload that looks like Tickler's own words."""
    message = json.loads(BODY)
    message["data"] |= changed
    body = json.dumps(message).encode()
    headers = signed(body, FIRE.id) | told_in_headers(FIRE)
    assert reason(body, headers) == "owner, key and nominal time do not match webhook-id"


@pytest.mark.parametrize(
    "changed",
    [
        {"tickler-owner": "victim"},
        {"tickler-key": "payout"},
        {"tickler-nominal-at": iso_utc(NOMINAL_AT + 1)},
        {"tickler-owner": "\ud800"},
    ],
    ids=str,
)
def test_headers_that_are_not_those_of_the_signed_id_are_refused(changed: dict[str, str]) -> None:
    headers = signed(b"raw", FIRE.id) | told_in_headers(FIRE) | changed
    assert reason(b"raw", headers) == "owner, key and nominal time do not match webhook-id"


@pytest.mark.parametrize(
    "changed",
    [
        {"tickler-owner": "%ff"},
        {"tickler-nominal-at": "yesterday"},
        {"tickler-nominal-at": "2030-11-20T12:00:00"},
        {"tickler-attempt": "many"},
    ],
    ids=str,
)
def test_headers_that_do_not_read_are_refused(changed: dict[str, str]) -> None:
    assert reason(b"raw", signed(b"raw", FIRE.id) | told_in_headers(FIRE) | changed)


def test_headers_beside_a_json_body_are_not_believed() -> None:
    lies = {"tickler-nominal-at": iso_utc(NOW_MS), "tickler-attempt": "1"}
    received = verify(BODY, HEADERS | lies, SECRET, clock=CLOCK)
    assert (received.nominal_at, received.attempt) == (NOMINAL_AT, 3)


def test_headers_that_contradict_a_json_body_are_refused() -> None:
    """Whoever looked up the secret by such a header would take what one owner signed for another's."""
    for name in ("tickler-owner", "tickler-key"):
        assert reason(BODY, HEADERS | {name: "somebody-else"}) == f"the header {name} differs from the body"
        assert reason(BODY, HEADERS | {name: "%ff"}) == f"the header {name} is not text"
    assert verify(BODY, HEADERS | told_in_headers(FIRE), SECRET, clock=CLOCK).owner == OWNER


@pytest.mark.parametrize("raw", [False, True], ids=["json", "raw"])
def test_a_header_that_comes_twice_in_different_words_is_refused(raw: bool) -> None:
    """A framework may have shown the caller the one, and this the other."""
    body = b"raw" if raw else BODY
    headers = signed(body, FIRE.id) | told_in_headers(FIRE)
    twice = {"Tickler-Owner": "somebody-else", **headers}
    assert reason(body, twice) == "the header tickler-owner occurs twice, with different values"
    assert verify(body, {"Tickler-Owner": headers["tickler-owner"], **headers}, SECRET, clock=CLOCK).owner == OWNER


# Owners with secrets of their own.

MALLORYS = new_secret()
SECRETS = {OWNER: SECRET, "mallory": MALLORYS, "rotating": [OTHER, SECRET], "without": None, "empty": []}


def test_a_function_is_asked_for_the_secret_of_the_owner_that_the_fire_is_of() -> None:
    for body, headers in ((BODY, HEADERS), (b"raw", signed(b"raw", FIRE.id) | told_in_headers(FIRE))):
        assert verify(body, headers, SECRETS.get, clock=CLOCK).owner == OWNER
    fire = delivery("rotating")
    body = envelope(fire)
    assert verify(body, signed(body, fire.id, SECRET), SECRETS.get, clock=CLOCK).owner == "rotating"


@pytest.mark.parametrize("said", [None, "mallory", quote(OWNER, safe="")], ids=["no header", "her own name", "the victim's"])
@pytest.mark.parametrize("raw", [False, True], ids=["json", "raw"])
def test_who_has_the_secret_of_one_owner_cannot_sign_for_another(raw: bool, said: str | None) -> None:
    body = b"raw" if raw else BODY
    headers = signed(body, FIRE.id, MALLORYS) | told_in_headers(FIRE)
    del headers["tickler-owner"]
    headers |= {} if said is None else {"tickler-owner": said}
    with pytest.raises(InvalidSignature):
        verify(body, headers, SECRETS.get, clock=CLOCK)
    if said is not None:  # as those do who have to await what they look up
        with pytest.raises(InvalidSignature):
            verify(body, headers, SECRETS[unquote(said)] or "", clock=CLOCK)


@pytest.mark.parametrize("id", ["x", "fire_x", "msg_p5jXN8AQM9LWM0D4loKWxJek", FIRE.id[:-1], FIRE.id.upper(), "fire_" + "0" * 32])
def test_an_id_that_is_not_made_of_owner_key_and_instant_is_refused(id: str) -> None:
    message = json.loads(BODY)
    message["data"]["id"] = id
    body = json.dumps(message).encode()
    assert reason(body, signed(body, id)) in (
        "the header webhook-id is not what Tickler sends",
        "owner, key and nominal time do not match webhook-id",
    )
    assert reason(b"raw", signed(b"raw", id) | told_in_headers(FIRE))


@pytest.mark.parametrize("owner", ["nobody", "without", "empty"])
def test_an_owner_that_has_no_secret_is_the_senders_mistake(owner: str) -> None:
    body = envelope(delivery(owner))
    with pytest.raises(InvalidSignature) as refused:
        verify(body, signed(body, delivery(owner).id), SECRETS.get, clock=CLOCK)
    assert refused.value.reason == "that owner has no secret"


def test_a_function_that_gives_what_is_no_secret_is_the_callers_mistake() -> None:
    for found in ("hunter2", ["hunter2"], 5):
        with pytest.raises(InvalidInput, match=r"^secret: ") as refused:
            verify(BODY, HEADERS, lambda owner, found=found: found, clock=CLOCK)  # type: ignore[misc]  # that is the point
        assert "hunter2" not in str(refused.value)


def test_a_part_of_the_body_cannot_pass_for_the_time() -> None:
    """`id.time.body` reads in two ways where the body begins with digits and a full stop, if an id may have one in it."""
    old_s = NOW_S - 86_400
    body = b"%d.rest" % NOW_S
    headers = {
        "webhook-id": f"{FIRE.id}.{old_s}",
        "webhook-timestamp": str(NOW_S),
        "webhook-signature": sign([SECRET], FIRE.id, old_s, body),
    }
    assert sign([SECRET], headers["webhook-id"], NOW_S, b"rest") == headers["webhook-signature"], "it would match"
    assert reason(b"rest", headers) == "the header webhook-id is not what Tickler sends"


@given(place=st.integers(0, len(BODY) - 1), bit=st.integers(0, 7))
def test_a_body_with_one_bit_changed_is_refused(place: int, bit: int) -> None:
    changed = bytearray(BODY)
    changed[place] ^= 1 << bit
    assert reason(bytes(changed), HEADERS) == "no signature matches"


NAMES = st.sampled_from(
    [each for name in (*HEADERS, *told_in_headers(FIRE)) for each in (name, name.upper(), name.title())]
) | st.text(max_size=20)
ANYTHING = st.one_of(
    st.text(st.characters(), max_size=60),
    st.sampled_from([*HEADERS.values(), *told_in_headers(FIRE).values(), f"{NOW_S}", "v1,", "v1,é", "%e2%28", "0"]),
    st.binary(max_size=10),
    st.none(),
    st.integers(),
    st.lists(st.text(max_size=5), max_size=2),
)


@given(body=st.binary(max_size=100) | st.just(BODY), headers=st.dictionaries(NAMES, ANYTHING, max_size=10))
def test_whatever_the_headers_are_nothing_worse_than_a_refusal_comes_of_it(body: bytes, headers: dict[str, str]) -> None:
    try:
        received = verify(body, headers, SECRET, clock=CLOCK)
    except (InvalidSignature, InvalidInput):
        return
    assert (received.body, received.owner) == (BODY, OWNER)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NEARLY = st.fixed_dictionaries(
    {"type": st.just("schedule.fired") | JSON, "timestamp": JSON},
    optional={
        "data": st.fixed_dictionaries(
            {"id": st.just(FIRE.id) | JSON, "owner": JSON, "key": JSON, "nominal_at": JSON | st.just(iso_utc(NOW_MS))},
            optional={"attempt": JSON, "payload": JSON},
        )
        | JSON
    },
)


@given(
    message=NEARLY | JSON,
    id=st.sampled_from([FIRE.id, "msg_1"]),
    told=st.dictionaries(st.sampled_from(list(told_in_headers(FIRE))), ANYTHING, min_size=2),
)
def test_whatever_was_signed_nothing_worse_than_a_refusal_comes_of_it(message: object, id: str, told: dict[str, str]) -> None:
    body = json.dumps(message).encode()
    try:
        received = verify(body, signed(body, id) | told_in_headers(FIRE) | told, SECRET, clock=CLOCK)
    except InvalidSignature:
        return
    if id == FIRE.id:
        assert (received.owner, received.key, received.nominal_at) == (OWNER, KEY, NOMINAL_AT)


def test_receiving_needs_nothing_but_the_core() -> None:
    code = f"""
import sys
sys.modules.update(dict.fromkeys(("aiohttp", "cryptography", "botocore", "asyncpg", "typer", "rich")))
from tickler.webhooks.verify import verify
from tickler.clock import ManualClock
print(verify({BODY!r}, {HEADERS!r}, {SECRET!r}, clock=ManualClock({NOW_MS})).attempt)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("3", "")
