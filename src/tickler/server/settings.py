"""Settings of the service."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from tickler.errors import InvalidInput

DEFAULT_PORT = 8321
# What a setting takes, if not any text.
EXPECTED = {
    "port": "a whole number from 0 to 65535",
    "rate": "a number greater than 0",
    "max_body": "a whole number of bytes, at least 1",
    "body_s": "a number of seconds greater than 0",
    "secure_cookie": "true or false",
    "max_connections": "a whole number, at least 1",
    "max_address_connections": "a whole number, at least 1",
    "proxies": "addresses or networks such as 10.0.0.0/8, separated by commas",
}


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Each field is read from the environment variable TICKLER_ plus its name in upper case."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = DEFAULT_PORT
    hosts: tuple[str, ...] = ()  # allowed Host names besides the listening address; others get 421
    rate: Annotated[float, Meta(gt=0)] = 200.0  # requests a second of one token
    max_body: Annotated[int, Meta(ge=1)] = 1_048_576  # bytes of a body, or of one line of an import
    body_s: Annotated[float, Meta(gt=0)] = 20.0  # time limit for receiving a body
    secure_cookie: bool = False  # set it if the page is served over https
    max_connections: Annotated[int, Meta(ge=1)] | None = None  # open at once; None: half of the file limit
    max_address_connections: Annotated[int, Meta(ge=1)] | None = None  # of those, from one address; None: a quarter
    # Addresses and networks of reverse proxies. Their X-Forwarded-For is trusted; the limit per address does not apply to them.
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")

    def __post_init__(self) -> None:
        for text in self.proxies:
            ipaddress.ip_network(text)  # its ValueError becomes a ValidationError

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **flags: object) -> Self:
        """Read settings. Flags that are not None override the environment, which overrides the defaults."""
        given = {
            name: environ[f"TICKLER_{name.upper()}"] for name in cls.__struct_fields__ if f"TICKLER_{name.upper()}" in environ
        }
        values: dict[str, object] = {**given, **{name: value for name, value in flags.items() if value is not None}}
        for name in ("hosts", "proxies"):
            if isinstance(values.get(name), str):
                values[name] = [each.strip() for each in str(values[name]).split(",") if each.strip()]
        try:
            return msgspec.convert(values, cls, strict=False)
        except msgspec.ValidationError as error:
            raise cls._invalid(values, str(error)) from None

    @classmethod
    def _invalid(cls, values: Mapping[str, object], reason: str) -> InvalidInput:
        """Return an error that names the first invalid setting."""
        for name, value in values.items():
            try:
                msgspec.convert({name: value}, cls, strict=False)
            except msgspec.ValidationError:
                text = ",".join(value) if isinstance(value, list) else str(value)
                where = f"TICKLER_{name.upper()}: {text[:80]!r} is not {EXPECTED.get(name, 'a valid value')}"
                return InvalidInput(f"{where}: change it, or leave it out; see the settings table in the docs")
        return InvalidInput(f"invalid settings: {reason}; see the settings table in the docs")

    @property
    def is_local(self) -> bool:
        """True if it listens on a loopback address only."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def needs_token(self) -> bool:
        """True if other machines can reach it, directly or through a proxy: every request then needs a token."""
        return bool(self.hosts) or not self.is_local

    @property
    def own_names(self) -> frozenset[str]:
        """Host names of the listening address; none for a wildcard address such as 0.0.0.0."""
        plain = self.host.lower().strip("[]")
        try:
            address = ipaddress.ip_address(plain)
        except ValueError:
            return frozenset({plain})
        if address.is_unspecified:
            return frozenset()
        return frozenset({plain, str(address)} if address.version == 4 else {f"[{plain}]", f"[{address}]"})
