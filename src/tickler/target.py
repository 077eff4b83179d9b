"""Where a fire goes, as values. Nothing here delivers."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from tickler.errors import InvalidSchedule

LONGEST_URL = 2_048
LONGEST_HANDLER = 128


class HttpTarget(msgspec.Struct, frozen=True, tag_field="type", tag="http", forbid_unknown_fields=True):
    """An HTTP endpoint that is sent a POST."""

    url: str

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or len(self.url) > LONGEST_URL:
            raise InvalidSchedule("target.url", f"give a URL of at most {LONGEST_URL} characters")
        if any(ord(character) <= 32 or ord(character) == 127 for character in self.url):
            raise InvalidSchedule("target.url", "has spaces or control characters in it: encode them as %20 and the like")
        try:
            parts = urlsplit(self.url)
            host, port_is_fine = parts.hostname, parts.port is None or 0 < parts.port < 65_536
        except ValueError as error:
            raise InvalidSchedule("target.url", f"{self.url!r} does not read as a URL: {error}") from None
        if parts.scheme not in ("http", "https") or not host or not port_is_fine:
            raise InvalidSchedule("target.url", f"{self.url!r} is no http or https address: write 'https://host/path'")
        if parts.username is not None or parts.password is not None:
            raise InvalidSchedule("target.url", "has a user name in it, which ends up in logs: send a header instead")


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
