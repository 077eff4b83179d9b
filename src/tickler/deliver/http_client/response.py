"""Reads one response from pieces of any size. Sans I/O: it is fed what arrives, and says what it knows by then."""

from __future__ import annotations

import re

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from tickler.deliver.http_client.errors import HeadersTooLong, InvalidResponse

MAX_LINE_BYTES = 8_190
MAX_HEADERS = 128
MAX_BODY_BYTES = 2_048  # that are kept
MAX_REST_BYTES = 16 * 1024  # a longer body is not read to its end: a new connection costs less

_CONTINUE = 100
_SWITCHING_PROTOCOLS = 101
_NO_CONTENT = 204
_WITHOUT_BODY = frozenset({_SWITCHING_PROTOCOLS, _NO_CONTENT, 304})
_END_OF_HEADERS = re.compile(rb"\n\r?\n")  # also without carriage returns, which some servers leave out
_END_OF_CHUNKS = re.compile(rb"[^\r\n]\r\n\r\n")
_END_LENGTH = 5
_UNTIL_CLOSED = -1


class ResponseReader:
    """A status counts as soon as all headers have arrived and are valid, whatever follows. Interim responses are skipped.

    The parser gets the headers and chunked bodies only. Other bodies are counted here, which tells exactly whether more arrived
    than belongs to this response: then the connection must not be used again.
    """

    def __init__(self) -> None:
        self.status = 0  # 0 until the headers are complete
        self.headers: dict[bytes, bytes] = {}  # with names in lower case
        self.body = b""  # its beginning
        self.ended = False  # nothing more belongs to this response
        self.reusable = False  # the next request may be sent on this connection
        self._headers = 0  # how many
        self._line_bytes = 0  # of the line that is not complete
        self._left: int | None = None  # of the body; None if the parser knows
        self._chunked_bytes = 0
        self._tail = b""
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        # As lenient as browsers are with what cannot be misunderstood.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is worth waiting for."""
        if self.ended or len(self.body) < MAX_BODY_BYTES:
            return self.ended
        left = MAX_REST_BYTES - self._chunked_bytes if self._left is None else self._left
        return not 0 <= left <= MAX_REST_BYTES

    def feed(self, data: bytes) -> None:
        """Read a piece. Raises `InvalidResponse` only while there is no status."""
        if not self.status:
            start = self._feed_head(data)
            if not self.status or self.ended:
                return
            data = data[start:]
        elif self.ended:
            self.reusable = self.reusable and not data
            return
        if data:
            self._feed_body(data)

    def end(self) -> None:
        """Read no more: the connection has ended, or must not be used again. What was read of the body is of use."""
        self.ended, self.reusable, self._parser = True, False, None

    def _end_well(self, is_alone: bool) -> None:
        """End with a complete body. `is_alone`: nothing has arrived after it."""
        reusable = self.reusable and is_alone
        self.end()
        self.reusable = reusable

    def _feed_head(self, data: bytes) -> int:
        """Feed the parser up to the end of the headers, and no further; return where that is."""
        parser, start, length = self._parser, 0, len(data)
        assert parser is not None
        while start < length and not self.status:
            end = self._end_of_headers(data, start)
            self._check_lines(data, start, end)
            try:
                parser.feed_data(data if end - start == length else data[start:end])
            except HttpParserUpgrade:
                pass  # the status is 101
            except HttpParserError as error:
                if not self.status:
                    raise (error.__context__ if isinstance(error.__context__, InvalidResponse) else InvalidResponse()) from None
            start = end
        if not self.status:
            return length
        self._begin_body(surplus=length > start)
        return start

    def _end_of_headers(self, data: bytes, start: int) -> int:
        """Return the end of the next blank line, which may have begun in the last piece; that of the data if there is none."""
        if start == 0 and self._tail:
            before = len(self._tail)
            found = _END_OF_HEADERS.search(self._tail + data[:2])
            if found is not None and found.end() > before:
                self._tail = b""
                return found.end() - before
        found = _END_OF_HEADERS.search(data, start)
        if found is not None:
            self._tail = b""
            return found.end()
        self._tail = (self._tail + data[start:][-2:])[-2:]
        return len(data)

    def _check_lines(self, data: bytes, start: int, end: int) -> None:
        """Raise `HeadersTooLong` for a line of the headers that is, and `InvalidResponse` for a NUL, which the parser allows."""
        if data.find(b"\0", start, end) >= 0:
            raise InvalidResponse
        if self._line_bytes + end - start > MAX_LINE_BYTES:
            lines = data[start:end].split(b"\n")
            if self._line_bytes + len(lines[0]) > MAX_LINE_BYTES or max(map(len, lines)) > MAX_LINE_BYTES:
                raise HeadersTooLong
        last = data.rfind(b"\n", start, end)
        self._line_bytes = end - last - 1 if last >= 0 else self._line_bytes + end - start

    def _begin_body(self, *, surplus: bool) -> None:
        self._tail = b""
        if self.status in _WITHOUT_BODY:
            self._left = 0
            if self.status == _NO_CONTENT and self._announces_content():
                self.reusable = False  # some servers send it all the same: later, it would be taken for the next response
        elif b"transfer-encoding" not in self.headers:
            self._left = int(self.headers.get(b"content-length", _UNTIL_CLOSED))
        if self._left == 0:
            self._end_well(not surplus)

    def _announces_content(self) -> bool:
        return b"transfer-encoding" in self.headers or int(self.headers.get(b"content-length", 0)) > 0

    def _feed_body(self, data: bytes) -> None:
        left = self._left
        if left is None:
            self._feed_parser(data)
            return
        if left == _UNTIL_CLOSED:
            self._keep(data)
            return
        self._keep(data[:left])
        self._left = left = left - len(data)
        if left <= 0:
            self._end_well(left == 0)

    def _feed_parser(self, data: bytes) -> None:
        """Feed a body in chunks. Line ends after it are skipped by the parser, and would be surplus."""
        assert self._parser is not None
        self._chunked_bytes += len(data)
        self._tail = (self._tail + data[-_END_LENGTH:])[-_END_LENGTH:]
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.end()
            return
        if self.ended:
            self._end_well(_END_OF_CHUNKS.fullmatch(self._tail) is not None)

    def _keep(self, data: bytes) -> None:
        missing = MAX_BODY_BYTES - len(self.body)
        if missing > 0:
            self.body += data[:missing]

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers += 1
        if self._headers > MAX_HEADERS:
            raise InvalidResponse
        if not self.status:  # and not a trailer
            self.headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        if self.status:  # another response, which nobody asked for
            self.reusable = False
            return
        assert self._parser is not None
        status: int = self._parser.get_status_code()
        if status < _CONTINUE:
            raise InvalidResponse
        if status >= 200 or status == _SWITCHING_PROTOCOLS:
            self.status = status
            self.reusable = status != _SWITCHING_PROTOCOLS and self._parser.should_keep_alive()  # which it forgets soon
        else:
            self.headers, self._headers = {}, 0

    def on_body(self, data: bytes) -> None:
        if not self.ended:
            self._keep(data)

    def on_message_complete(self) -> None:
        if self.status and self._left is None:
            self.ended = True
