"""Digests of content: what they tell to whom."""

from __future__ import annotations

import pytest

import tickler
from tickler.errors import InvalidInput
from tickler.webhooks.content_digest import ContentDigests
from tickler.webhooks.encryption import Encryption

OLD, NEW, OTHER = (tickler.new_key() for _ in range(3))


def digests_with(*keys: str) -> ContentDigests:
    return Encryption(keys).digests


@pytest.mark.parametrize("keys", [[], [OLD], [OLD, NEW]], ids=["no key", "one", "two"])
def test_a_digest_fits_its_content_and_no_other(keys: list[str]) -> None:
    digests = digests_with(*keys)
    digest = digests.make(b"hello")
    assert digests.fits(digest, b"hello", "u1/k")
    assert not digests.fits(digest, b"hello!", "u1/k")
    assert not digests.fits(digest, b"", "u1/k")


def test_digests_of_the_same_content_are_all_different() -> None:
    digests = digests_with(OLD)
    assert len({digests.make(b"hello") for _ in range(20)}) == 20


def test_a_digest_fits_after_a_rotation_and_new_ones_have_the_new_key() -> None:
    before = digests_with(OLD).make(b"hello")
    rotated = digests_with(NEW, OLD)
    assert rotated.fits(before, b"hello", "u1/k")
    assert not rotated.fits(before, b"other", "u1/k")
    assert digests_with(NEW).fits(rotated.make(b"hello"), b"hello", "u1/k")


@pytest.mark.parametrize("keys", [[], [OTHER]], ids=["no key", "another"])
def test_a_digest_of_a_key_that_is_not_here_cannot_be_compared(keys: list[str]) -> None:
    digest = digests_with(OLD).make(b"hello")
    with pytest.raises(InvalidInput, match=r"u1/k: cannot be compared .* TICKLER_KEY, after a comma"):
        digests_with(*keys).fits(digest, b"hello", "u1/k")


def test_a_guess_is_confirmed_only_by_who_has_the_key() -> None:
    """Someone who reads the digest, with its salt, and hashes each guess without the key."""
    digest = digests_with(OLD).make(b"493201")
    without_key = digest.replace(digest.partition(".")[0], "none")
    assert not digests_with().fits(without_key, b"493201", "u1/k")
    assert OLD not in digest
