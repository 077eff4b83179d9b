"""The signatures of each source, by the values that they publish."""

from __future__ import annotations

import pytest

from slothpost.sources.signatures import (
    appstore_signature,
    github_signature,
    is_from_appstore,
    is_from_github,
    is_from_vercel,
    vercel_signature,
)

PUBLISHED = "It's a Secret to Everybody"
GREETING = b"Hello, World!"


def test_github_signs_as_its_documentation_says() -> None:
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert github_signature(PUBLISHED, GREETING) == signature
    assert is_from_github(PUBLISHED, GREETING, signature)
    assert not is_from_github(PUBLISHED, GREETING + b" ", signature)
    assert not is_from_github(PUBLISHED + " ", GREETING, signature)


def test_apple_signs_as_its_documentation_says_with_a_prefix_or_without() -> None:
    digest = "7f062172b01cb00b53ca068614674a3d982a34062a0f5d37687d5e3377e54657"
    assert appstore_signature("This is my secret", GREETING) == f"hmacsha256={digest}"
    for given in (f"hmacsha256={digest}", digest):
        assert is_from_appstore("This is my secret", GREETING, given)


@pytest.mark.parametrize(
    ("secret", "body", "signature"),
    [
        ("test_secret", b'{"test":true}', "c2df2da54b7342c8dbb968e068d404d1c65acc91"),
        (PUBLISHED, GREETING, "01dc10d0c83e72ed246219cdd91669667fe2ca59"),
    ],
)
def test_vercel_signs_with_sha_1_and_any_of_several_secrets(secret: str, body: bytes, signature: str) -> None:
    assert vercel_signature(secret, body) == signature
    assert is_from_vercel(["another", secret, "a third"], body, signature)
    assert not is_from_vercel(["another"], body, signature)
    assert not is_from_vercel([], body, signature)


@pytest.mark.parametrize(
    "given", [None, "", "=", "sha256=", "sha256", "hmacsha256=", "0" * 40, "0" * 64, "é" * 64, "\ud800", "\x00"]
)
def test_what_is_no_signature_is_refused_without_an_error(given: str | None) -> None:
    assert not is_from_github(PUBLISHED, GREETING, given)
    assert not is_from_vercel([PUBLISHED], GREETING, given)
    assert not is_from_appstore(PUBLISHED, GREETING, given)


def test_an_empty_secret_signs_nothing() -> None:
    assert not is_from_github("", GREETING, github_signature("", GREETING))
    assert not is_from_vercel([""], GREETING, vercel_signature("", GREETING))
    assert not is_from_appstore("", GREETING, appstore_signature("", GREETING))
