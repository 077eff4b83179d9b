"""What an operator sets, from the environment. Everything has a default."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from ipaddress import ip_network
from urllib.parse import urlsplit

import msgspec

from pricebook.errors import InvalidField
from pricebook.events import Receiver
from tickler import verify
from tickler.errors import InvalidInput, InvalidSignature

DEFAULT_PORT = 8323
PREFIX = "PRICEBOOK_"
VARIABLES = frozenset(
    {
        "store", "table", "url", "port", "proxies", "tick_secret", "receivers", "region", "four_eyes", "large_change",
        "settle_url", "settle_secrets", "allow_networks",
    }
)  # fmt: skip
MIN_SECRET = 16
MAX_PERCENT = 1_000

_NO = ("0", "no", "false", "off")
_YES = ("1", "yes", "true", "on")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`base_url` is how browsers and programs reach this installation."""

    store: str = "sqlite:///pricebook.db"
    table: str = "pricebook"  # its name, on DynamoDB
    base_url: str = f"http://127.0.0.1:{DEFAULT_PORT}"
    proxies: tuple[str, ...] = ()
    tick_secret: str | None = None  # of an outside cron; without one, there is no /tick
    receivers: tuple[str, ...] = ()  # addresses that events are sent to, signed; after `legacy:` those of the first service
    region: str = ""  # where this process runs, if the table is replicated: it acts for stores whose home it is
    four_eyes: bool = True  # whoever submitted a change set does not approve it
    large_change: float = 0.3  # from which share of a price on a report warns
    settle_url: str | None = None  # what schedules call, `/settle` of any process; without one, they call a worker
    settle_secrets: tuple[str, ...] = ()  # that /settle accepts, as of tickler.new_secret(); the first one signs
    allow_networks: tuple[str, ...] = ()  # private networks that receivers may be in

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise InvalidField(
                "PRICEBOOK_URL", f"{self.base_url!r} is not an address without a path, such as https://prices.example.com"
            )
        if self.tick_secret is not None and len(self.tick_secret) < MIN_SECRET:
            remedy = "such as what `openssl rand -hex 32` prints, since others could guess it"
            raise InvalidField("PRICEBOOK_TICK_SECRET", f"use at least {MIN_SECRET} characters, {remedy}")
        if "://" not in self.store:
            remedy = "use one such as sqlite:///pricebook.db or postgresql://user@host/database"
            raise InvalidField("PRICEBOOK_STORE", f"it is not the address of a store: {remedy}")
        if self.settle_url is not None and not self.settle_secrets:
            remedy = "and /settle takes only what is signed: set it to what tickler.new_secret() returns"
            raise InvalidField("PRICEBOOK_SETTLE_SECRETS", f"it is missing, {remedy}")
        for secret in self.settle_secrets:
            _check_secret(secret)
        for network in self.allow_networks:
            _check_network(network)
        for address in self.receivers:
            try:
                Receiver.read(address)
            except InvalidField as error:
                raise InvalidField("PRICEBOOK_RECEIVERS", error.reason) from None

    def __repr__(self) -> str:
        return f"<Settings of {self.base_url}>"  # the rest may have credentials

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def is_https(self) -> bool:
        return self.base_url.startswith("https://")

    def url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}{path}"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Settings:
        """Read the variables that the guide lists, all of which begin with PRICEBOOK_."""
        found = {name.removeprefix(PREFIX).lower(): value for name, value in environ.items() if name.startswith(PREFIX)}
        _check_names(found)
        port = found.get("port", str(DEFAULT_PORT))
        if not port.isdecimal() or not 0 < int(port) < 65_536:
            raise InvalidField("PRICEBOOK_PORT", f"{port!r} is not a port: use a number up to 65535")
        return cls(
            store=found.get("store", "sqlite:///pricebook.db"),
            table=found.get("table", "pricebook"),
            base_url=found.get("url", f"http://127.0.0.1:{port}"),
            proxies=_list(found, "proxies"),
            tick_secret=found.get("tick_secret") or None,
            receivers=_list(found, "receivers"),
            region=found.get("region", ""),
            four_eyes=_flag(found, "four_eyes", default=True),
            large_change=_percent(found, "large_change", 30) / 100,
            settle_url=found.get("settle_url") or None,
            settle_secrets=_list(found, "settle_secrets"),
            allow_networks=_list(found, "allow_networks"),
        )


def _check_names(found: Mapping[str, str]) -> None:
    """Refuse a variable that nothing reads: it is misspelled."""
    for name in sorted(found.keys() - VARIABLES):
        close = get_close_matches(name, sorted(VARIABLES), 1)
        remedy = f"did you mean {PREFIX}{close[0].upper()}?" if close else "remove it"
        raise InvalidField(f"{PREFIX}{name.upper()}", f"there is no such variable: {remedy}")


def _check_secret(secret: str) -> None:
    with suppress(InvalidSignature):  # nothing is signed here: what counts is that something could be
        try:
            verify(b"", {}, secret)
        except InvalidInput:
            remedy = "set it to what tickler.new_secret() returns, several with commas between them"
            raise InvalidField("PRICEBOOK_SETTLE_SECRETS", f"it is not a secret: {remedy}") from None


def _check_network(text: str) -> None:
    try:
        ip_network(text)
    except ValueError as error:
        raise InvalidField("PRICEBOOK_ALLOW_NETWORKS", f"{error}: write 10.0.0.0/8, fd00::/8 or one address") from None


def _list(found: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in found.get(name, "").split(",") if part.strip())


def _percent(found: Mapping[str, str], name: str, default: int) -> int:
    text = found.get(name, str(default)).strip()
    if not text.isdecimal() or not 0 < int(text[:9]) <= MAX_PERCENT:
        raise InvalidField(f"{PREFIX}{name.upper()}", f"{text[:20]!r} is not a percentage: use a number up to {MAX_PERCENT}")
    return int(text)


def _flag(found: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = found.get(name, "").strip().lower()
    if text not in ("", *_YES, *_NO):
        raise InvalidField(f"{PREFIX}{name.upper()}", f"{text!r} is neither yes nor no: use one of them")
    return text in _YES if text else default
