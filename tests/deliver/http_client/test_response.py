"""Responses in pieces of any size, sound and broken: what is known of them never depends on how they were split."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tickler.deliver.http_client.errors import HeadersTooLong, InvalidResponse
from tickler.deliver.http_client.response import MAX_BODY_BYTES, MAX_HEADERS, MAX_LINE_BYTES, MAX_REST_BYTES, ResponseReader

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


class Read(NamedTuple):
    status: int
    body: bytes
    ended: bool
    reusable: bool


def read(*pieces: bytes) -> Read | None:
    """What is known in the end; None if it is not valid."""
    reader = ResponseReader()
    try:
        for piece in pieces:
            reader.feed(piece)
    except InvalidResponse:
        assert reader.status == 0
        return None
    return Read(reader.status, reader.body, reader.ended, reader.reusable)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


COMPLETE = {
    "length": (OK + b"Content-Length: 5\r\n\r\nhello", Read(200, b"hello", True, True)),
    "no body": (OK + b"content-length: 0\r\n\r\n", Read(200, b"", True, True)),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", Read(204, b"", True, True)),
    "204 that announces a body": (b"HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\n", Read(204, b"", True, False)),
    "204 that announces chunks": (b"HTTP/1.1 204 No\r\ntransfer-encoding: chunked\r\n\r\n", Read(204, b"", True, False)),
    "204 that announces no body": (b"HTTP/1.1 204 No\r\ncontent-length: 0\r\n\r\n", Read(204, b"", True, True)),
    "304": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 100\r\n\r\n", Read(304, b"", True, True)),
    "chunks": (CHUNKED + b"5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\n\r\n", Read(200, b"hello world", True, True)),
    "trailers": (CHUNKED + b"1\r\nx\r\n0\r\nx-sum: 7\r\nx:\r\n\r\n", Read(200, b"x", True, True)),
    "a length in the trailers": (CHUNKED + b"1\r\nx\r\n0\r\ncontent-length: 7\r\n\r\n", Read(200, b"x", True, False)),
    "interim": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" + OK + b"content-length: 1\r\n\r\nx",
                Read(200, b"x", True, True)),
    "line ends without carriage returns": (b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok", Read(200, b"ok", True, True)),
    "line ends before it": (b"\r\n\r\n" + OK + b"content-length: 2\r\n\r\nok", Read(200, b"ok", True, True)),
    "close": (OK + b"connection: close\r\ncontent-length: 2\r\n\r\nok", Read(200, b"ok", True, False)),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", Read(200, b"ok", True, False)),
    "HTTP/1.0 that is kept": (
        b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok", Read(200, b"ok", True, True)),
    "until the end": (OK + b"\r\nuntil the end", Read(200, b"until the end", False, False)),
    "half": (OK + b"content-length: 100\r\n\r\nhalf", Read(200, b"half", False, True)),
    "half of a chunk": (CHUNKED + b"64\r\nhalf", Read(200, b"half", False, True)),
    "other encodings": (OK + b"transfer-encoding: gzip\r\n\r\nabc", Read(200, b"abc", False, False)),
    "surplus after a length": (OK + b"content-length: 2\r\n\r\nokk", Read(200, b"ok", True, False)),
    "surplus after no body": (OK + b"content-length: 0\r\n\r\nx", Read(200, b"", True, False)),
    "a line end after no body": (OK + b"content-length: 0\r\n\r\n\r\n", Read(200, b"", True, False)),
    "a body after 204": (b"HTTP/1.1 204 No Content\r\n\r\nand yet", Read(204, b"", True, False)),
    "a line end after chunks": (CHUNKED + b"1\r\nx\r\n0\r\n\r\n\r\n", Read(200, b"x", True, False)),
    "a second response": (2 * (OK + b"content-length: 2\r\n\r\nok"), Read(200, b"ok", True, False)),
    "a second response after chunks": (2 * (CHUNKED + b"1\r\nx\r\n0\r\n\r\n"), Read(200, b"x", True, False)),
    "half a response after chunks": (CHUNKED + b"1\r\nx\r\n0\r\n\r\nHTTP/1.1 2", Read(200, b"x", True, False)),
    "garbage after chunks": (CHUNKED + b"1\r\nx\r\n0\r\n\r\ngarbage\r\n\r\n", Read(200, b"x", True, False)),
    "garbage for a chunk": (CHUNKED + b"1\r\nx\r\nzz\r\n", Read(200, b"x", True, False)),
    "a chunk longer than said": (CHUNKED + b"1\r\nxyz\r\n0\r\n\r\n", Read(200, b"x", True, False)),
    "a chunk size that overflows": (CHUNKED + b"1" * 40 + b"\r\n", Read(200, b"", True, False)),
    "another protocol": (
        b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\nxyz", Read(101, b"", True, False)),
    "another protocol that is not named": (b"HTTP/1.1 101 Switching\r\n\r\n", Read(101, b"", True, False)),
}  # fmt: skip
INVALID = {
    "garbage": b"garbage",
    "mail": b"220 mail ESMTP\r\n",
    "both lengths": OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "both lengths, turned": OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n",
    "two lengths": OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nokk",
    "negative": OK + b"content-length: -1\r\n\r\n",
    "a length with digits of others": OK + "content-length: ٣\r\n\r\nabc".encode(),
    "a length with an underscore": OK + b"content-length: 1_0\r\n\r\n0123456789",
    "a length that overflows": OK + b"content-length: " + b"9" * 30 + b"\r\n\r\n",
    "a status below 100": b"HTTP/1.1 099 No\r\ncontent-length: 2\r\n\r\nno" + OK + b"content-length: 2\r\n\r\nok",
    "no colon": OK + b"no colon\r\n\r\n",
    "NUL": OK + b"x: a\0b\r\n\r\n",
    "a long line": OK + b"x: " + b"y" * MAX_LINE_BYTES + b"\r\n\r\n",
    "a long line that goes on": OK + b"x: " + b"y" * MAX_LINE_BYTES,
    "a long reason": b"HTTP/1.1 200 " + b"y" * MAX_LINE_BYTES + b"\r\n\r\n",
    "many headers": OK + b"x: y\r\n" * (MAX_HEADERS + 1) + b"\r\n",
    "an interim response and garbage": b"HTTP/1.1 100 Continue\r\n\r\ngarbage",
}


@pytest.mark.parametrize(("data", "expected"), COMPLETE.values(), ids=COMPLETE)
def test_a_response_is_read_wherever_it_is_split(data: bytes, expected: Read) -> None:
    assert read(data) == expected
    assert read(*(data[n : n + 1] for n in range(len(data)))) == expected
    for place in range(len(data)):
        assert read(data[:place], data[place:]) == expected, data[place:]


@pytest.mark.parametrize("data", INVALID.values(), ids=INVALID)
def test_what_is_not_a_response_is_refused_wherever_it_is_split(data: bytes) -> None:
    assert read(data) is None
    assert read(*(data[n : n + 1] for n in range(len(data)))) is None
    for place in range(0, len(data), max(len(data) // 100, 1)):
        assert read(data[:place], data[place:]) is None, data[place:]


@pytest.mark.parametrize("name", ["a long line", "a long line that goes on", "a long reason"])
@pytest.mark.parametrize("size", [1, 7, 1_000, 100_000])
def test_long_lines_are_told_from_what_is_not_http(name: str, size: int) -> None:
    reader, data = ResponseReader(), INVALID[name]

    def feed() -> None:
        for start in range(0, len(data), size):
            reader.feed(data[start : start + size])

    with pytest.raises(HeadersTooLong):
        feed()


def test_many_short_headers_may_be_longer_together_than_one_line() -> None:
    data = OK + b"".join(b"x-%d: %b\r\n" % (n, b"y" * 400) for n in range(MAX_HEADERS - 1)) + b"content-length: 0\r\n\r\n"
    assert len(data) > 6 * MAX_LINE_BYTES
    assert read(data) == read(*cut(data, [8_000, 16_000, 20_001])) == Read(200, b"", True, True)


def test_of_a_header_that_comes_twice_the_first_counts_and_trailers_do_not() -> None:
    reader = ResponseReader()
    reader.feed(CHUNKED.replace(b"\r\n\r\n", b"\r\nRetry-After: 1\r\nretry-after: 2\r\n\r\n"))
    reader.feed(b"0\r\nwebhook-delivery: abort-message\r\n\r\n")
    assert (reader.headers[b"retry-after"], b"webhook-delivery" in reader.headers, reader.ended) == (b"1", False, True)


@pytest.mark.parametrize(
    ("head", "length", "is_settled"),
    [
        (OK + b"content-length: %d\r\n\r\n" % MAX_REST_BYTES, MAX_BODY_BYTES, False),  # soon at its end
        (OK + b"content-length: 99999999\r\n\r\n", MAX_BODY_BYTES - 1, False),
        (OK + b"content-length: 99999999\r\n\r\n", MAX_BODY_BYTES, True),
        (OK + b"\r\n", MAX_BODY_BYTES, True),
        (CHUNKED + b"fffff\r\n", MAX_BODY_BYTES, False),
        (CHUNKED + b"fffff\r\n", MAX_REST_BYTES, True),
    ],
)
def test_of_a_long_body_only_the_beginning_is_waited_for(head: bytes, length: int, is_settled: bool) -> None:
    reader = ResponseReader()
    reader.feed(head)
    reader.feed(b"x" * length)
    assert (reader.is_settled, reader.body) == (is_settled, b"x" * min(length, MAX_BODY_BYTES))


SOUND = st.sampled_from([data for data, _ in COMPLETE.values()] + list(INVALID.values()))
BITS = st.sampled_from(
    [
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"0",
        b"1\r\n",
        b":",
        b"\0",
        b"HTTP/1.1 ",
        b"200",
        b"content-length: 1\r\n",
        b"\r\n\r\n",
        b"\xff",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = draw(SOUND)
    for _ in range(draw(st.integers(0, 4))):
        place, length = draw(st.integers(0, len(data))), draw(st.integers(0, 4))
        data = data[:place] + draw(BITS | st.binary(max_size=4)) + data[place + length :]
    return data


@given(mutated() | st.lists(BITS).map(b"".join), st.lists(st.integers(0, 20_000), max_size=6))
@example(CHUNKED + b"1\r\nx\r\n0\r\n\r\n\n", [])
def test_what_is_known_of_a_broken_response_does_not_depend_on_how_it_was_split(data: bytes, places: list[int]) -> None:
    found = read(data)
    assert read(*cut(data, places)) == found
    if found is not None and found.reusable and found.ended:
        again = OK + b"content-length: 0\r\n\r\n"
        assert read(data, again) == found._replace(reusable=False), "whatever comes after the end is surplus"


@given(st.binary(max_size=3_000), st.lists(st.integers(1, 500), max_size=10), st.lists(st.integers(0, 20_000), max_size=6))
def test_a_body_in_any_chunks_is_put_together(body: bytes, sizes: list[int], places: list[int]) -> None:
    chunks, rest = b"", body
    for size in [*sizes, len(body)]:
        if chunk := rest[:size]:
            chunks += b"%x\r\n%b\r\n" % (len(chunk), chunk)
            rest = rest[size:]
    whole = CHUNKED + chunks + b"0\r\n\r\n"
    assert read(*cut(whole, places)) == Read(200, body[:MAX_BODY_BYTES], True, True)
