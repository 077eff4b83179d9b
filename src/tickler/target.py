"""Where a fire goes, as values. Nothing here delivers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from tickler.errors import InvalidSchedule

LONGEST_URL = 2_048
LONGEST_HANDLER = 128

_HOST = re.compile(r"(\[[^\[\]]+\]|[^\[\]:]+)(:\d*)?")


class HttpTarget(msgspec.Struct, frozen=True, tag_field="type", tag="http", forbid_unknown_fields=True):
    """An HTTP endpoint that is sent a POST."""

    url: str

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or len(self.url) > LONGEST_URL:
            raise InvalidSchedule("target.url", f"give a URL as text, of at most {LONGEST_URL} characters")
        if any(character <= " " or "\x7f" <= character <= "\xa0" or "\ud800" <= character <= "\udfff" for character in self.url):
            raise InvalidSchedule(
                "target.url", "has spaces, control characters or half characters in it: write them as %20 and the like"
            )
        try:
            parts = urlsplit(self.url)
            plain_host = parts.netloc.rpartition("@")[2]
            well_formed = parts.hostname and (parts.port is None or parts.port > 0) and _HOST.fullmatch(plain_host)
        except ValueError:
            parts, well_formed = urlsplit(""), None
        if "@" in parts.netloc:  # checked first, so that no message repeats it
            raise InvalidSchedule("target.url", "has a user name in it, which ends up in logs: send a header instead")
        if parts.scheme not in ("http", "https") or not well_formed:
            raise InvalidSchedule("target.url", "is no http or https address: write 'https://host/path'")


class PythonTarget(msgspec.Struct, frozen=True, tag_field="type", tag="python", forbid_unknown_fields=True):
    """A handler that the worker registered under this name. Nothing is ever imported from stored text."""

    handler: str

    def __post_init__(self) -> None:
        if not isinstance(self.handler, str) or not 0 < len(self.handler) <= LONGEST_HANDLER or not self.handler.isprintable():
            raise InvalidSchedule("target.handler", f"give the name of a registered handler, 1 to {LONGEST_HANDLER} characters")


Target = HttpTarget | PythonTarget


def read_target(value: object) -> Target | None:
    """A target as people pass it: a value, a URL, or an object as it stands in JSON."""
    if value is None or isinstance(value, HttpTarget | PythonTarget):
        return value
    if isinstance(value, str):
        return HttpTarget(value)
    if isinstance(value, Mapping):
        try:
            return msgspec.convert(dict(value), type=Target)  # type: ignore[no-any-return]  # a union is a type to msgspec
        except msgspec.ValidationError as error:
            raise InvalidSchedule("target", f"{error}: write {{'type': 'http', 'url': 'https://…'}}") from None
    raise InvalidSchedule("target", f"is a {type(value).__name__}: pass a URL, an HttpTarget or a PythonTarget")
