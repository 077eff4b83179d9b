"""Targets of fires, as values. `deliver/target_registry.py` says how to add a kind to Tickler.

Other packages add kinds by the entry point group `tickler.targets`, named after their `type` in JSON. Each entry point names a
frozen msgspec.Struct with `tag_field="type"` and that tag. Its deliverer is registered with `Tickler.deliver_with`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec.structs import force_setattr

from tickler.errors import InvalidSchedule

MAX_URL_LENGTH = 2_048
MAX_HANDLER_LENGTH = 128
MAX_HEADERS = 50
MAX_HEADERS_LENGTH = 8_192
REDACTED = "•••"

# A fast check that most URLs pass, since each read of a schedule checks: a plain host, a port, and visible ASCII.
_PLAIN_URL = re.compile(r"https?://[a-z0-9](?:[a-z0-9.-]{0,252})(?::(?:[1-9]\d{0,3}|[1-5]\d{4}))?(?:/[!-~]*)?")
_UNFIT = re.compile(r"[\x00-\x20\x7f-\xa0\ud800-\udfff]")
_HOST = re.compile(r"(\[[^\[\]]+\]|[^\[\]:]+)(:\d*)?")
_HANDLER = re.compile(r"[A-Za-z_][\w-]{0,63}")  # looks like the name of a handler, not like a host
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
SQS_ARN = re.compile(r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}(\.fifo)?")
LAMBDA_ARN = re.compile(r"arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]{1,140}(:[A-Za-z0-9$_-]{1,128})?")
# Set by Tickler, and by the connection.
_OUR_HEADERS = ("webhook-", "tickler-")
_CONNECTION_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "proxy-authorization"}
)


class Target(msgspec.Struct, frozen=True, tag_field="type", gc=False):
    """Base class of all kinds."""


class HttpTarget(Target, frozen=True, tag="http", forbid_unknown_fields=True, omit_defaults=True):
    """An HTTP endpoint, which receives a POST.

    `body`: "json" sends an envelope with the payload and the fire's id and times, "raw" sends the payload alone. `headers` are
    sent along; `secret` signs instead of the owner's. Both are encrypted before they are stored, which needs a key
    (TICKLER_KEY), and are never shown again: a stored target has `sealed`, which can be put again as it is, and header names.
    """

    url: str
    body: Literal["json", "raw"] = "json"
    headers: Mapping[str, str] | None = None
    secret: str | None = None
    sealed: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            url: str,
            body: Literal["json", "raw"] = "json",
            headers: Mapping[str, str] | None = None,
            secret: str | None = None,
            sealed: str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        _check_url(self.url)
        if self.body not in ("json", "raw"):
            raise InvalidSchedule("target.body", f"{self.body!r} is neither 'json' nor 'raw'")
        if self.headers is not None:
            force_setattr(self, "headers", _checked_headers(self.headers))
        if self.secret is not None and (not isinstance(self.secret, str) or not self.secret):
            raise InvalidSchedule("target.secret", "give a signing secret as text, such as tickler.new_secret() makes")
        if self.sealed is not None and not isinstance(self.sealed, str):
            raise InvalidSchedule("target.sealed", "must be text: pass what was read from a stored schedule, or leave it out")
        if self.has_secrets and REDACTED in (self.secret, *(self.headers or {}).values()):
            raise InvalidSchedule("target.headers", "are redacted: pass their values, or the `sealed` that was read with them")

    @property
    def has_secrets(self) -> bool:
        """Whether it has values that must be encrypted before they are stored."""
        return self.sealed is None and bool(self.headers or self.secret)

    def redacted(self, sealed: str | None = None) -> HttpTarget:
        """Return the target without its secret values; `sealed` is stored in their place."""
        headers = None if not self.headers else dict.fromkeys(self.headers, REDACTED)
        return HttpTarget(self.url, self.body, headers, REDACTED if self.secret else None, sealed or self.sealed)

    def __repr__(self) -> str:
        shown = [repr(self.url)]
        shown += [f"body={self.body!r}"] if self.body != "json" else []
        shown += [f"headers={dict.fromkeys(self.headers, REDACTED)}"] if self.headers else []
        shown += [f"secret={REDACTED!r}"] if self.secret else []
        return f"HttpTarget({', '.join(shown)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        headers = [("headers", dict.fromkeys(self.headers, REDACTED))] if self.headers else []
        return [("url", self.url), *headers]


class PythonTarget(Target, frozen=True, tag="python", forbid_unknown_fields=True):
    """A handler that the worker has registered under this name. Stored text is never imported."""

    handler: str

    def __post_init__(self) -> None:
        if not isinstance(self.handler, str) or not 0 < len(self.handler) <= MAX_HANDLER_LENGTH or not self.handler.isprintable():
            raise InvalidSchedule(
                "target.handler", f"give the name of a registered handler, 1 to {MAX_HANDLER_LENGTH} characters"
            )


class SqsTarget(Target, frozen=True, tag="sqs", forbid_unknown_fields=True):
    """An Amazon SQS queue, by its ARN, which must be on the worker's allow-list."""

    arn: str

    def __post_init__(self) -> None:
        if not isinstance(self.arn, str) or not SQS_ARN.fullmatch(self.arn):
            raise InvalidSchedule("target.arn", "is not the ARN of a queue: write 'arn:aws:sqs:eu-west-1:123456789012:name'")


class LambdaTarget(Target, frozen=True, tag="lambda", forbid_unknown_fields=True):
    """An AWS Lambda function, by its ARN, which must be on the worker's allow-list."""

    arn: str

    def __post_init__(self) -> None:
        if not isinstance(self.arn, str) or not LAMBDA_ARN.fullmatch(self.arn):
            raise InvalidSchedule(
                "target.arn", "is not the ARN of a function: write 'arn:aws:lambda:eu-west-1:123456789012:function:name'"
            )


_EXAMPLES = {
    "http": "write {'type': 'http', 'url': 'https://…'}",
    "python": "write {'type': 'python', 'handler': 'name'}",
    "sqs": "write {'type': 'sqs', 'arn': 'arn:aws:sqs:eu-west-1:123456789012:name'}",
    "lambda": "write {'type': 'lambda', 'arn': 'arn:aws:lambda:eu-west-1:123456789012:function:name'}",
}
OWN_KINDS: tuple[type[Target], ...] = (HttpTarget, PythonTarget, SqsTarget, LambdaTarget)


def label_of(target: Target | type[Target] | None) -> str:
    """Return what a worker needs to deliver to the target: its kind, and for a Python target the handler."""
    if isinstance(target, PythonTarget):
        return f"python:{target.handler}"
    return "unknown" if target is None else str(target.__struct_config__.tag)


def read_target(value: object) -> Target | None:
    """Read a target as callers pass it: a value, a URL, or an object from JSON."""
    if value is None or isinstance(value, Target):
        return value
    if isinstance(value, str):
        return HttpTarget(value)
    if isinstance(value, Mapping):
        return _from_json(dict(value))
    raise InvalidSchedule("target", f"is a {type(value).__name__}: pass a URL, an HttpTarget or a PythonTarget")


def _from_json(fields: dict[str, Any]) -> Target:
    kinds = _kinds()
    tag = fields.get("type")
    kind = kinds.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise InvalidSchedule(
            "target", f"type {tag!r} is not one of {', '.join(kinds)}: write {{'type': 'http', 'url': 'https://…'}}"
        )
    try:
        return msgspec.convert(fields, type=kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InvalidSchedule):  # it already names the field and the remedy
            raise error.__cause__ from None
        raise InvalidSchedule("target", f"{error}: {_EXAMPLES.get(str(tag), 'see what this kind takes')}") from None


@cache
def _kinds() -> dict[str, type[Target]]:
    """Return the kinds by their `type` in JSON. Only entry points add kinds, never stored text."""
    kinds = {str(kind.__struct_config__.tag): kind for kind in OWN_KINDS}
    for point in entry_points(group="tickler.targets"):
        kinds.setdefault(point.name, point.load())
    return kinds


def _check_url(url: object) -> None:
    if not isinstance(url, str) or len(url) > MAX_URL_LENGTH:
        raise InvalidSchedule("target.url", f"give a URL as text, of at most {MAX_URL_LENGTH} characters")
    if _PLAIN_URL.fullmatch(url):
        return
    if _UNFIT.search(url):
        raise InvalidSchedule(
            "target.url", "contains spaces, control characters or unpaired surrogates: percent-encode them, such as %20"
        )
    try:
        parts = urlsplit(url)
        well_formed = parts.hostname and _HOST.fullmatch(parts.netloc.rpartition("@")[2])
    except ValueError:
        parts, well_formed = urlsplit(""), None
    if "@" in parts.netloc:  # checked first, so that no other message repeats it
        raise InvalidSchedule("target.url", "contains a user name, which would end up in logs: send a header instead")
    if parts.scheme in ("http", "https") and parts.hostname and not _has_good_port(parts):
        raise InvalidSchedule("target.url", "has an invalid port: write a number from 1 to 65535")
    if parts.scheme not in ("http", "https") or not well_formed:
        handler = f", or {{'type': 'python', 'handler': {url!r}}} for a handler" if _HANDLER.fullmatch(url) else ""
        raise InvalidSchedule(
            "target.url", f"must start with http:// or https:// and name a host: write 'https://host/path'{handler}"
        )


def _has_good_port(parts: SplitResult) -> bool:
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False


def _checked_headers(headers: object) -> dict[str, str]:
    if not isinstance(headers, Mapping) or len(headers) > MAX_HEADERS:
        raise InvalidSchedule("target.headers", f"give a mapping of at most {MAX_HEADERS} names to values")
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not HEADER_NAME.fullmatch(name):
            # The message does not repeat the name: it may contain the value.
            raise InvalidSchedule("target.headers", "one has an invalid name: use letters, digits and '-'")
        lower = name.lower()
        if lower.startswith(_OUR_HEADERS) or lower in _CONNECTION_HEADERS:
            raise InvalidSchedule("target.headers", f"{name} is set by Tickler or by the connection: leave it out")
        if lower in checked:
            raise InvalidSchedule("target.headers", f"{name} occurs twice: leave out one of them")
        if not isinstance(value, str) or (value != REDACTED and not all(" " <= each <= "~" or each == "\t" for each in value)):
            raise InvalidSchedule("target.headers", f"the value of {name} must be ASCII text without line breaks")
        checked[lower] = value
    if sum(len(name) + len(value) for name, value in checked.items()) > MAX_HEADERS_LENGTH:
        raise InvalidSchedule("target.headers", f"are longer than {MAX_HEADERS_LENGTH} bytes: send the data in the payload")
    return checked
