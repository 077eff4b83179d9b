"""Targets as values: what they take, what they refuse, and their JSON. Nothing is delivered here."""

from __future__ import annotations

import msgspec
import pytest

from tickler.errors import InvalidSchedule
from tickler.model.target import (
    MAX_HANDLER_LENGTH,
    MAX_HEADERS,
    MAX_HEADERS_LENGTH,
    MAX_URL_LENGTH,
    REDACTED,
    HttpTarget,
    LambdaTarget,
    PythonTarget,
    SqsTarget,
    Target,
    read_target,
)

URL = "https://example.org/hook"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:jobs"
FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:digest"


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
        "https://example.org/" + "x" * (MAX_URL_LENGTH - 20),
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
        "https://example.org/" + "x" * (MAX_URL_LENGTH - 19),
        "https://example.org/" + "x" * 10_000_000,
    ],
    ids=lambda url: repr(url[:60]),
)
def test_a_url_that_is_no_plain_http_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidSchedule, match=r"^target\.url: ") as refused:
        http(url)
    assert refused.value.field == "target.url"
    assert len(str(refused.value)) < 3_000


@pytest.mark.parametrize("port", ["99999", "65536", "0", "http", "-1"])
@pytest.mark.parametrize("host", ["localhost", "[::1]"])
def test_a_port_that_is_none_is_what_is_named(host: str, port: str) -> None:
    with pytest.raises(InvalidSchedule, match=r"^target\.url: has an invalid port: write a number from 1 to 65535$"):
        http(f"http://{host}:{port}/h")


@pytest.mark.parametrize(
    ("given", "offered"), [("digest", True), ("send_digest-2", True), ("example.org", False), ("/hook", False), ("", False)]
)
def test_what_may_be_a_handlers_name_is_offered_as_a_python_target(given: str, offered: bool) -> None:
    with pytest.raises(
        InvalidSchedule, match=r"^target\.url: must start with http:// or https:// and name a host: write 'https://host/path'"
    ) as refused:
        read_target(given)
    assert (", or {'type': 'python', 'handler': " in str(refused.value)) is offered


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
    "handler", ["digest", "a", "billing.monthly", "send digest", "été:日本", "x" * MAX_HANDLER_LENGTH], ids=lambda name: name[:20]
)
def test_a_handlers_name_is_kept_as_it_was_written(handler: str) -> None:
    assert python(handler).handler == handler


@pytest.mark.parametrize(
    "handler",
    ["", "x" * (MAX_HANDLER_LENGTH + 1), "a\nb", "a\x00", "a\x85", "\ud800", None, 5, True, b"digest", ["digest"], print],
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
        ({"type": "http", "url": URL, "headers": {"X-Team": "blue"}}, HttpTarget(URL, headers={"x-team": "blue"})),
        ({"type": "sqs", "arn": QUEUE}, SqsTarget(QUEUE)),
        ({"type": "lambda", "arn": FUNCTION}, LambdaTarget(FUNCTION)),
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
        ({"type": "http", "url": "https://example.org/", "header": {"x": "y"}}, "header"),
        ({"type": "http", "url": "https://example.org/", "headers": {"host": "y"}}, "host"),
        ({"type": "http", "url": "https://example.org/", "headers": ["x"]}, "headers"),
        ({"type": "http", "url": "https://example.org/", "headers": {"x": 5}}, "headers"),
        ({"type": "http", "url": "https://example.org/", "body": "xml"}, "body"),
        ({"type": "http", "url": "https://example.org/", "secret": 5}, "secret"),
        ({"type": "http", "url": "https://example.org/", "sealed": 5}, "sealed"),
        ({"type": "sqs"}, "arn"),
        ({"type": "sqs", "arn": FUNCTION}, "arn:aws:sqs:"),
        ({"type": "sqs", "arn": QUEUE, "url": "https://example.org/"}, "url"),
        ({"type": "lambda"}, "arn"),
        ({"type": "lambda", "arn": QUEUE}, "arn:aws:lambda:"),
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


@pytest.mark.parametrize(
    "target",
    [
        HttpTarget("https://bücher.example/?x=1"),
        HttpTarget(URL, "raw", {"authorization": "Bearer x", "x-empty": ""}, "whsec_x"),
        HttpTarget(URL, headers={"authorization": REDACTED}, secret=REDACTED, sealed="gAAAA"),
        PythonTarget("日本"),
        SqsTarget(QUEUE),
        LambdaTarget(FUNCTION),
    ],
    ids=str,
)
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


# Headers, secrets, and how they are kept from sight.


def test_what_is_not_given_is_not_in_the_json() -> None:
    assert msgspec.to_builtins(HttpTarget(URL)) == {"type": "http", "url": URL}


def test_names_of_headers_are_kept_in_lower_case_and_values_as_they_are() -> None:
    target = HttpTarget(URL, headers={"Authorization": "Bearer ~!\t x", "X-Team_1": ""})
    assert target.headers == {"authorization": "Bearer ~!\t x", "x-team_1": ""}


@pytest.mark.parametrize(
    "headers",
    [
        {f"x-{number}": "hunter2" for number in range(MAX_HEADERS + 1)},
        {"x-long": "hunter2" * MAX_HEADERS_LENGTH},
        {"x": "v" * (MAX_HEADERS_LENGTH - 1), "y": "v"},
        # What Tickler or the connection says.
        *[
            {name: "hunter2"}
            for name in (
                "webhook-id",
                "Webhook-Signature",
                "webhook-anything",
                "tickler-owner",
                "Host",
                "content-length",
                "Transfer-Encoding",
                "connection",
                "upgrade",
                "te",
                "trailer",
                "expect",
                "proxy-authorization",
            )
        ],
        # Names that are none.
        *[{name: "hunter2"} for name in ("", "a b", "a:b", "ä", "a\r\nb", "a\0", "x" * 201, "\ud800")],
        {5: "hunter2"},
        {"X-Team": "hunter2", "x-team": "hunter2"},
        # Values that are none.
        *[{"x": value} for value in ("hunter2\r\nx: y", "hunter2\n", "hunter2\0", "hunter2\x7f", "hunter2é", "hunter2\ud800")],
        *[{"x": value} for value in (None, 5, b"hunter2", ["hunter2"])],
        # No mapping.
        [("x", "hunter2")],
        "x: hunter2",
        5,
    ],
    ids=lambda headers: repr(headers)[:40],
)
def test_headers_that_cannot_be_sent_are_refused_and_their_values_not_repeated(headers: object) -> None:
    with pytest.raises(InvalidSchedule, match=r"^target\.headers: ") as refused:
        HttpTarget(URL, headers=headers)  # type: ignore[arg-type]  # wrong types are the point
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("body", ["xml", "", "JSON", None, 5], ids=repr)
def test_a_body_is_json_or_raw(body: object) -> None:
    assert HttpTarget(URL, "raw").body == "raw"
    with pytest.raises(InvalidSchedule, match=r"^target\.body: "):
        HttpTarget(URL, body)  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize("field", ["secret", "sealed"])
@pytest.mark.parametrize("value", [5, b"hunter2", ["hunter2"], True], ids=repr)
def test_a_secret_is_text(field: str, value: object) -> None:
    with pytest.raises(InvalidSchedule, match=rf"^target\.{field}: ") as refused:
        HttpTarget(URL, **{field: value})  # type: ignore[arg-type]  # wrong types are the point
    assert "hunter2" not in str(refused.value)


def test_what_was_redacted_is_refused_without_what_it_was_sealed_to() -> None:
    for fields in ({"headers": {"x": REDACTED}}, {"headers": {"x": "y", "z": REDACTED}}, {"secret": REDACTED}):
        with pytest.raises(InvalidSchedule, match="redacted: pass their values"):
            HttpTarget(URL, **fields)
        assert not HttpTarget(URL, sealed="gAAAA", **fields).has_secrets


def test_redacted_it_keeps_the_names_of_headers_and_no_value() -> None:
    target = HttpTarget(URL, "raw", {"authorization": "hunter2"}, "hunter2")
    assert target.has_secrets
    redacted = target.redacted("gAAAA")
    assert redacted == HttpTarget(URL, "raw", {"authorization": REDACTED}, REDACTED, "gAAAA")
    assert redacted.redacted() == redacted
    assert not redacted.has_secrets
    assert HttpTarget(URL).redacted() == HttpTarget(URL)
    assert not HttpTarget(URL, headers={}).has_secrets


def test_a_target_prints_no_values() -> None:
    target = HttpTarget(URL, "raw", {"authorization": "hunter2"}, "hunter2")
    assert repr(target) == f"HttpTarget({URL!r}, body='raw', headers={{'authorization': '{REDACTED}'}}, secret='{REDACTED}')"
    assert "hunter2" not in f"{target}{[target]}{msgspec.structs.replace(target, secret=None)}"


# Queues and functions of AWS.


@pytest.mark.parametrize(
    "arn",
    [
        QUEUE,
        f"{QUEUE}.fifo",
        "arn:aws-cn:sqs:cn-north-1:123456789012:a_b-C",
        "arn:aws-us-gov:sqs:us-gov-west-1:000000000000:x",
        "arn:aws:sqs:eu-west-1:123456789012:" + "x" * 80,
    ],
)
def test_a_queue_is_named_by_its_arn(arn: str) -> None:
    assert SqsTarget(arn).arn == arn


@pytest.mark.parametrize(
    "arn",
    [
        FUNCTION,
        f"{FUNCTION}:live",
        f"{FUNCTION}:$LATEST",
        f"{FUNCTION}:42",
        "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:x",
    ],
)
def test_a_function_is_named_by_its_arn(arn: str) -> None:
    assert LambdaTarget(arn).arn == arn


@pytest.mark.parametrize(
    "arn",
    [
        "",
        "jobs",
        "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs",
        "arn:aws:sqs:eu-west-1:12345:jobs",
        "arn:aws:sqs:eu-west-1::jobs",
        "arn:aws:sqs::123456789012:jobs",
        "arn:aws:sqs:eu-west-1:123456789012:",
        "arn:aws:sqs:eu-west-1:123456789012:" + "x" * 81,
        "arn:aws:sns:eu-west-1:123456789012:jobs",
        "arn:aws:sqs:evil.example/:123456789012:jobs",
        "arn:aws:lambda:evil.example/:123456789012:function:digest",
        "arn:aws:lambda:eu-west-1:123456789012:layer:digest",
        "arn:aws:lambda:eu-west-1:123456789012:function:",
        f"{QUEUE}/../x",
        f"{QUEUE}\n",
        f" {QUEUE}",
        f"{FUNCTION}:a b",
        f"{FUNCTION}\n",
        None,
        5,
        QUEUE.encode(),
    ],
    ids=lambda arn: repr(arn)[-30:],
)
@pytest.mark.parametrize("kind", [SqsTarget, LambdaTarget])
def test_an_arn_of_something_else_is_refused(kind: type[SqsTarget | LambdaTarget], arn: object) -> None:
    with pytest.raises(InvalidSchedule, match=r"^target\.arn: .*write 'arn:aws:"):
        kind(arn)  # type: ignore[arg-type]  # wrong types are the point


def test_an_arn_that_is_none_is_the_field_at_fault_with_one_remedy() -> None:
    with pytest.raises(InvalidSchedule) as refused:
        read_target({"type": "sqs", "arn": "queue"})
    assert refused.value.field == "target.arn"
    assert str(refused.value) == "target.arn: is not the ARN of a queue: write 'arn:aws:sqs:eu-west-1:123456789012:name'"
