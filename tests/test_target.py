"""Targets as values: what they take, what they refuse, and their JSON. Nothing is delivered here."""

from __future__ import annotations

import msgspec
import pytest

from tickler.errors import InvalidSchedule
from tickler.target import LONGEST_HANDLER, LONGEST_URL, HttpTarget, PythonTarget, Target, read_target


def http(url: object) -> HttpTarget:
    return HttpTarget(url)  # type: ignore[arg-type]  # wrong types are the point


def python(handler: object) -> PythonTarget:
    return PythonTarget(handler)  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "https://example.org/",
        "http://example.org:8080/hook?x=1&y=%20#part",
        "HTTPS://EXAMPLE.ORG/Hook",
        "https://example.org:/hook",
        "https://example.org:65535/",
        "http://10.0.0.1:8080/",
        "http://localhost/",
        "http://[::1]/",
        "http://[2001:db8::1]:8443/hook",
        "https://bücher.example/ä?ö=ü",
        "https://xn--bcher-kva.example/",
        "https://日本.example/",
        "https://example.org/user:name@path?q=a@b",
        "https://example.org/" + "x" * (LONGEST_URL - 20),
    ],
    ids=lambda url: url[:60],
)
def test_an_http_address_is_kept_as_it_was_written(url: str) -> None:
    assert http(url).url == url


@pytest.mark.parametrize(
    "url",
    [
        # Not http.
        "",
        "example.org",
        "//example.org/hook",
        "/hook",
        "ftp://example.org/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "javascript://example.org/%0aalert(1)",
        "data:text/plain,x",
        "gopher://example.org/",
        "mailto:a@example.org",
        "http+unix://socket/hook",
        "ws://example.org/",
        # No host.
        "http:",
        "http://",
        "http:///hook",
        "http:example.org",
        "http://:80/",
        "https://?x=1",
        "https://#part",
        # A port that is none.
        "https://example.org:0/",
        "https://example.org:65536/",
        "https://example.org:-1/",
        "https://example.org:http/",
        "https://example.org:8 0/",
        "https://example.org:\uff18\uff10/",
        # A broken address literal.
        "http://[::1/",
        "http://::1]/",
        "http://[::1]extra/",
        "http://[example.org]/",
        # A user name.
        "https://user@example.org/",
        "https://user:hunter2@example.org/",
        "https://:hunter2@example.org/",
        "https://@example.org/",
        "https://user@[::1]/",
        "https://trusted.example\\@evil.example/",
        # Spaces, control characters, and what is no text.
        "https://example.org/a b",
        " https://example.org/",
        "https://example.org/ ",
        "https://example.org/\thook",
        "https://example.org/\r\nHost: evil.example",
        "https://exam\nple.org/",
        "https://example.org/\x00",
        "https://example.org/\x1f",
        "https://example.org/\x7f",
        "https://example.org/\x80",
        "https://example.org/\x85",
        "https://example.org/\x9f",
        "https://example.org/\ud800",
        # A host that turns into another one when it is normalised.
        "https://example.org℀/",
        # Too long.
        "https://example.org/" + "x" * (LONGEST_URL - 19),
        "https://example.org/" + "x" * 10_000_000,
    ],
    ids=lambda url: repr(url[:60]),
)
def test_a_url_that_is_no_plain_http_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidSchedule, match=r"^target\.url: ") as refused:
        http(url)
    assert refused.value.field == "target.url"
    assert len(str(refused.value)) < 3_000


@pytest.mark.parametrize("url", [None, 5, True, b"https://example.org/", ["https://example.org/"], object], ids=repr)
def test_a_url_that_is_no_text_is_refused(url: object) -> None:
    with pytest.raises(InvalidSchedule, match=r"^target\.url: "):
        http(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:hunter2@example.org/",
        "https://user:hunter2@example.org:99999/",
        "ftp://user:hunter2@example.org/",
        "https://user:hunter2@/",
    ],
)
def test_a_password_in_a_refused_url_is_not_repeated(url: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        http(url)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "handler", ["digest", "a", "billing.monthly", "send digest", "été:日本", "x" * LONGEST_HANDLER], ids=lambda name: name[:20]
)
def test_a_handlers_name_is_kept_as_it_was_written(handler: str) -> None:
    assert python(handler).handler == handler


@pytest.mark.parametrize(
    "handler",
    ["", "x" * (LONGEST_HANDLER + 1), "a\nb", "a\x00", "a\x85", "\ud800", None, 5, True, b"digest", ["digest"], print],
    ids=lambda name: repr(name)[:40],
)
def test_a_handlers_name_that_is_none_is_refused(handler: object) -> None:
    with pytest.raises(InvalidSchedule, match=r"^target\.handler: "):
        python(handler)


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (None, None),
        (HttpTarget("https://example.org/"), HttpTarget("https://example.org/")),
        (PythonTarget("digest"), PythonTarget("digest")),
        ("https://example.org/", HttpTarget("https://example.org/")),
        ({"type": "http", "url": "https://example.org/"}, HttpTarget("https://example.org/")),
        ({"type": "python", "handler": "digest"}, PythonTarget("digest")),
    ],
    ids=str,
)
def test_a_target_is_a_value_a_url_or_an_object(given: object, target: Target | None) -> None:
    assert read_target(given) == target


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "type"),
        ({"url": "https://example.org/"}, "type"),
        ({"type": "ftp", "url": "ftp://example.org/"}, "ftp"),
        ({"type": None, "url": "https://example.org/"}, "type"),
        ({"type": "http"}, "url"),
        ({"type": "http", "url": None}, "url"),
        ({"type": "http", "url": 5}, "url"),
        ({"type": "http", "handler": "digest"}, "handler"),
        ({"type": "http", "url": "https://example.org/", "headers": {"x": "y"}}, "headers"),
        ({"type": "http", "url": "file:///etc/passwd"}, "https://host/path"),
        ({"type": "http", "url": "https://user@example.org/"}, "user name"),
        ({"type": "python"}, "handler"),
        ({"type": "python", "handler": ""}, "handler"),
        ({"type": "python", "handler": "os.system", "import": "os"}, "import"),
        ({1: 2}, "target"),
        ("", "target.url"),
        ("digest", "target.url"),
        (b"https://example.org/", "bytes"),
        (5, "int"),
        (True, "bool"),
        (["https://example.org/"], "list"),
        (print, "builtin_function_or_method"),
    ],
    ids=str,
)
def test_anything_else_is_refused_and_what_is_wrong_is_named(given: object, named: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        read_target(given)
    assert str(refused.value).startswith("target")
    assert named in str(refused.value)


@pytest.mark.parametrize("target", [HttpTarget("https://bücher.example/?x=1"), PythonTarget("日本")], ids=str)
def test_a_target_survives_json(target: Target) -> None:
    assert read_target(msgspec.to_builtins(target)) == target
    assert read_target(msgspec.json.decode(msgspec.json.encode(target))) == target


def test_a_target_is_immutable_and_the_same_as_an_equal_one() -> None:
    target = HttpTarget("https://example.org/")
    with pytest.raises(AttributeError):
        target.url = "https://evil.example/"  # type: ignore[misc]  # that is the point
    assert target == HttpTarget("https://example.org/")
    assert hash(target) == hash(HttpTarget("https://example.org/"))
    others: list[Target] = [HttpTarget("https://example.com/"), PythonTarget("https://example.org/")]
    assert target not in others
