"""`t.encryption`: an application's own secrets under the keys of Tickler."""

from __future__ import annotations

import json
import logging
import pickle

import msgspec
import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

import tickler
from tickler.errors import DecryptionFailed, InvalidInput
from tickler.model.target import HttpTarget
from tickler.webhooks.encryption import Encryption
from tickler.webhooks.key_ring import MAX_ENCRYPTED_LENGTH, KeyRing, new_key
from tickler.webhooks.text_encryption import MAX_PURPOSE_BYTES, MAX_TEXT_BYTES, TextEncryption

KEY, OLD_KEY, ANOTHER = new_key(), new_key(), new_key()
SECRET = "ya29.hunter2"
PURPOSE = "calendar token of u1"
ENCRYPTION = TextEncryption(KeyRing([KEY]))
OLD = TextEncryption(KeyRing([OLD_KEY]))
BOTH = TextEncryption(KeyRing([KEY, OLD_KEY]))


@given(text=st.text(max_size=200), purpose=st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=100))
def test_what_was_encrypted_is_decrypted(text: str, purpose: str) -> None:
    encrypted = ENCRYPTION.encrypt(text, purpose=purpose)
    assert ENCRYPTION.decrypt(encrypted, purpose=purpose) == text
    assert not ENCRYPTION.uses_old_key(encrypted, purpose=purpose)
    assert len(encrypted) <= 2 * len(text.encode()) + 1_000


def test_the_same_text_is_encrypted_differently_each_time() -> None:
    encrypted = {ENCRYPTION.encrypt(SECRET, purpose=PURPOSE) for _ in range(5)}
    assert len(encrypted) == 5
    assert all(each.isascii() and SECRET not in each for each in encrypted)


@pytest.mark.parametrize("text", ["x" * MAX_TEXT_BYTES, "\0" * MAX_TEXT_BYTES, "日" * (MAX_TEXT_BYTES // 3)], ids=repr)
def test_the_longest_texts_fit_whatever_they_consist_of(text: str) -> None:
    purpose = "p" * MAX_PURPOSE_BYTES
    encrypted = ENCRYPTION.encrypt(text, purpose=purpose)
    assert ENCRYPTION.decrypt(encrypted, purpose=purpose) == text
    assert len(encrypted) <= MAX_ENCRYPTED_LENGTH


@pytest.mark.parametrize(
    ("text", "purpose", "why"),
    [
        ("x" * (MAX_TEXT_BYTES + 1), PURPOSE, "text: has 32,769 bytes, and 32,768 are allowed"),
        ("é" * MAX_TEXT_BYTES, PURPOSE, "text: has 65,536 bytes"),
        (b"hunter2", PURPOSE, "text: is a bytes: pass a str, and bytes as base64"),
        ("\ud800hunter2", PURPOSE, "text: has half a character"),
        (SECRET, "", "purpose: must be printable"),
        (SECRET, "two\nlines", "purpose: must be printable"),
        (SECRET, "p" * 513, "purpose: has 513 bytes"),
        (SECRET, 7, "purpose: is a int"),
    ],
)
def test_what_cannot_be_encrypted_is_refused_without_showing_it(text: str, purpose: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ENCRYPTION.encrypt(text, purpose=purpose)
    assert str(refused.value).startswith(why)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def failed(encryption: TextEncryption, encrypted: str, purpose: str = PURPOSE) -> DecryptionFailed:
    """Return the error of decrypting, which is that of the other two methods too."""
    errors: list[DecryptionFailed] = []
    for method in (encryption.decrypt, encryption.uses_old_key, encryption.reencrypt):
        with pytest.raises(DecryptionFailed) as failure:
            method(encrypted, purpose=purpose)
        errors.append(failure.value)
    assert len({str(error) for error in errors}) == 1
    assert SECRET not in str(errors[0])
    assert errors[0].purpose == purpose
    return errors[0]


def test_the_purpose_must_be_the_same() -> None:
    encrypted = ENCRYPTION.encrypt(SECRET, purpose=PURPOSE)
    for other in ("calendar token of u2", "calendar token of u1 ", "Calendar token of u1", "x"):
        assert "another purpose" in failed(ENCRYPTION, encrypted, other).reason


def test_a_key_that_is_gone_and_one_of_another_store_decrypt_nothing() -> None:
    encrypted = OLD.encrypt(SECRET, purpose=PURPOSE)
    for encryption in (ENCRYPTION, TextEncryption(KeyRing([ANOTHER, KEY]))):
        assert "no key in TICKLER_KEY decrypts it" in failed(encryption, encrypted).reason
    assert "set TICKLER_KEY" in failed(TextEncryption(KeyRing()), encrypted).reason


@given(position=st.integers(0, 10_000), letter=st.sampled_from("ABCxyz019_-="))
def test_a_text_that_was_changed_is_refused(position: int, letter: str) -> None:
    encrypted = ENCRYPTION.encrypt(SECRET, purpose=PURPOSE)
    place = position % len(encrypted)
    changed = encrypted[:place] + letter + encrypted[place + 1 :]
    if changed != encrypted and changed.rstrip("=") != encrypted.rstrip("="):
        failed(ENCRYPTION, changed)


@pytest.mark.parametrize("text", ["", "hunter2", "ü", " ", "a" * (MAX_ENCRYPTED_LENGTH + 1), "gAAAAA=="])
def test_what_is_no_encrypted_text_is_refused(text: str) -> None:
    assert "hunter2" not in str(failed(ENCRYPTION, text))


def test_what_the_engine_encrypted_for_itself_is_not_decrypted() -> None:
    """And the other way round: otherwise an application could be made to show a signing secret, or a target to send its own."""
    engine = Encryption(KeyRing([KEY]))
    target = engine.encrypt_target(HttpTarget("https://example.org/", headers={"authorization": SECRET}), "u1")
    for encrypted in (engine.encrypt_text(SECRET, PURPOSE), str(target.sealed)):
        assert "by Tickler for itself" in failed(ENCRYPTION, encrypted).reason
    with pytest.raises(InvalidInput):
        engine.decrypt_text(ENCRYPTION.encrypt(SECRET, purpose=PURPOSE), PURPOSE)
    for content in (json.dumps(["application", PURPOSE, SECRET]).encode(), msgspec.msgpack.encode(["text", PURPOSE, SECRET])):
        failed(ENCRYPTION, Fernet(KEY).encrypt(content).decode())


def test_keys_are_rotated() -> None:
    encrypted = OLD.encrypt(SECRET, purpose=PURPOSE)
    assert BOTH.decrypt(encrypted, purpose=PURPOSE) == SECRET
    assert BOTH.uses_old_key(encrypted, purpose=PURPOSE)
    again = BOTH.reencrypt(encrypted, purpose=PURPOSE)
    assert again != encrypted
    assert not BOTH.uses_old_key(again, purpose=PURPOSE)
    assert BOTH.reencrypt(again, purpose=PURPOSE) == again
    assert ENCRYPTION.decrypt(again, purpose=PURPOSE) == SECRET


def test_without_a_key_nothing_is_encrypted() -> None:
    with pytest.raises(InvalidInput, match=r"calendar token of u1: must be encrypted, and there is no key: set TICKLER_KEY"):
        TextEncryption(KeyRing()).encrypt(SECRET, purpose=PURPOSE)


def test_no_key_and_no_text_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    encrypted = BOTH.encrypt(SECRET, purpose=PURPOSE)
    BOTH.decrypt(encrypted, purpose=PURPOSE)
    error = failed(ENCRYPTION, OLD.encrypt(SECRET, purpose=PURPOSE))
    shown = f"{BOTH!r} {BOTH} {BOTH._keys!r} {error!r} {pickle.dumps(error)!r} {caplog.text}"
    assert not [secret for secret in (SECRET, KEY, OLD_KEY) if secret in shown]


async def test_a_tickler_has_it_with_and_without_await(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKLER_KEY", f"{KEY},{OLD_KEY}")
    t = tickler.connect("memory://")  # it need not be open
    encrypted = t.encryption.encrypt(SECRET, purpose=PURPOSE)
    assert tickler.connect_sync("memory://").encryption.decrypt(encrypted, purpose=PURPOSE) == SECRET
    assert t.encryption.uses_old_key(OLD.encrypt(SECRET, purpose=PURPOSE), purpose=PURPOSE)
