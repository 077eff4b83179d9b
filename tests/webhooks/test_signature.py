"""Signatures as Standard Webhooks writes them, against its published vector and the plain definition."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickler.errors import InvalidInput
from tickler.webhooks.signature import check_secret, is_signed, new_secret, sign

# Published with the reference libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
TIMESTAMP_S = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

PLAUSIBLE = "hunter2hunter2hunter2hunter2"  # what must not be repeated


def secret_of(size: int) -> str:
    return "whsec_" + base64.b64encode(bytes(range(size))).decode()


def test_the_published_vector_is_signed_as_published() -> None:
    assert sign([SECRET], ID, TIMESTAMP_S, BODY) == SIGNATURE


def test_the_published_vector_is_known_as_signed_and_nothing_else_is() -> None:
    other = secret_of(32)
    for signatures, secrets in (
        (SIGNATURE, [SECRET]),
        (f"v1,x {SIGNATURE} v2,y", [other, SECRET]),
        (f"v1a,x {SIGNATURE}", [SECRET]),
    ):
        assert is_signed(signatures, secrets, ID, TIMESTAMP_S, BODY)
    for signatures in ("", "v1,", SIGNATURE[3:], SIGNATURE.replace("v1", "v2"), SIGNATURE[:-1], f"{SIGNATURE}=", "v1,é"):
        assert not is_signed(signatures, [SECRET], ID, TIMESTAMP_S, BODY)
    assert not is_signed(SIGNATURE, [other], ID, TIMESTAMP_S, BODY)
    assert not is_signed(SIGNATURE, [SECRET], f"{ID}x", TIMESTAMP_S, BODY)
    assert not is_signed(SIGNATURE, [SECRET], ID, TIMESTAMP_S + 1, BODY)
    assert not is_signed(SIGNATURE, [SECRET], ID, TIMESTAMP_S, BODY + b" ")


def test_a_secret_signs_the_same_without_its_prefix() -> None:
    assert sign([SECRET.removeprefix("whsec_")], ID, TIMESTAMP_S, BODY) == SIGNATURE


def test_each_secret_gives_a_signature_of_its_own_in_their_order() -> None:
    other = secret_of(32)
    both = sign([other, SECRET], ID, TIMESTAMP_S, BODY)
    assert both == f"{sign([other], ID, TIMESTAMP_S, BODY)} {SIGNATURE}"


def test_nothing_is_signed_with_no_secret_at_all() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        sign([], ID, TIMESTAMP_S, BODY)


@given(key=st.binary(min_size=24, max_size=64), body=st.binary(max_size=300), timestamp_s=st.integers(0, 10**12))
def test_a_signature_is_what_the_definition_says(key: bytes, body: bytes, timestamp_s: int) -> None:
    expected = hmac.new(key, f"fire_1.{timestamp_s}.".encode() + body, hashlib.sha256).digest()
    secret = "whsec_" + base64.b64encode(key).decode()
    assert sign([secret], "fire_1", timestamp_s, body) == "v1," + base64.b64encode(expected).decode()


def test_a_new_secret_is_good_and_never_the_same() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    for secret in secrets:
        assert check_secret(secret) == secret
        assert secret.startswith("whsec_")
        assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32


@pytest.mark.parametrize("secret", [secret_of(24), secret_of(64), secret_of(32).removeprefix("whsec_"), SECRET])
def test_a_secret_has_24_to_64_bytes(secret: str) -> None:
    assert check_secret(secret) == secret


NO_SECRETS = [
    "",
    "whsec_",
    secret_of(23),
    secret_of(65),
    f"whsec_{PLAUSIBLE}!",
    f"whsk_{PLAUSIBLE}{PLAUSIBLE}",
    f"{PLAUSIBLE} {PLAUSIBLE}",
    f"whsec_{PLAUSIBLE}{PLAUSIBLE}\n",
    secret_of(32).rstrip("="),
    "whsec_whsec_" + PLAUSIBLE * 2,
    PLAUSIBLE + "\ud800",
    "•••",
]


@pytest.mark.parametrize("text", [*NO_SECRETS, None, 5, SECRET.encode(), [SECRET]], ids=repr)
def test_what_is_no_secret_is_refused_with_a_remedy_and_not_repeated(text: object) -> None:
    with pytest.raises(InvalidInput, match=r"^secret: .*tickler\.new_secret\(\)") as refused:
        check_secret(text)
    assert "hunter2" not in f"{refused.value!r}{refused.value.__cause__!r}"


@pytest.mark.parametrize("text", NO_SECRETS, ids=repr)
def test_nothing_is_signed_with_what_is_no_secret(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^secret: ") as refused:
        sign([SECRET, text], ID, TIMESTAMP_S, BODY)
    assert "hunter2" not in str(refused.value)
