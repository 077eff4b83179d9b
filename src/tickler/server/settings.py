"""What an operator can say about the service."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from tickler.errors import InvalidInput

DEFAULT_PORT = 8321
# What those want that do not take any text.
WANTED = {
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
    """Each has a variable in the environment: TICKLER_ and its name in upper case."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = DEFAULT_PORT
    hosts: tuple[str, ...] = ()  # names by which others may call it, besides where it listens; for further ones 421
    rate: Annotated[float, Meta(gt=0)] = 200.0  # requests a second that one token may make, and twice as many at once
    max_body: Annotated[int, Meta(ge=1)] = 1_048_576  # bytes; an import is a stream, and each of its lines may be as long
    body_s: Annotated[float, Meta(gt=0)] = 20.0  # for a request to arrive in
    secure_cookie: bool = False  # set it where the page is reached by https
    max_connections: Annotated[int, Meta(ge=1)] | None = None  # open at once; None: half of the files that may be open
    max_address_connections: Annotated[int, Meta(ge=1)] | None = None  # of them, from one address; None: a quarter
    # Addresses and networks of reverse proxies: their X-Forwarded-For is believed, and they connect as often as they like.
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")

    def __post_init__(self) -> None:
        for text in self.proxies:
            ipaddress.ip_network(text)  # its ValueError becomes a ValidationError

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **flags: object) -> Self:
        """Flags that are not None come first, then the environment, then the defaults."""
        given = {
            name: environ[f"TICKLER_{name.upper()}"] for name in cls.__struct_fields__ if f"TICKLER_{name.upper()}" in environ
        }
        values: dict[str, object] = {**given, **{name: value for name, value in flags.items() if value is not None}}
        for name in ("hosts", "proxies"):
            if isinstance(values.get(name), str):
                values[name] = [each.strip() for each in str(values[name]).split(",") if each.strip()]
        try:
            settings = msgspec.convert(values, cls, strict=False)
        except msgspec.ValidationError as error:
            raise cls._misfit(values, str(error)) from None
        return settings

    @classmethod
    def _misfit(cls, values: Mapping[str, object], reason: str) -> InvalidInput:
        """Says which of them it is."""
        for name, value in values.items():
            try:
                msgspec.convert({name: value}, cls, strict=False)
            except msgspec.ValidationError:
                said = ",".join(value) if isinstance(value, list) else str(value)
                where = f"TICKLER_{name.upper()}: {said[:80]!r} is not {WANTED.get(name, 'what it wants')}"
                return InvalidInput(f"{where}: change it, or leave it out; see the settings table in the docs")
        return InvalidInput(f"the service's settings do not fit: {reason}: see the settings table in the docs")

    @property
    def is_local(self) -> bool:
        """Whether it listens for this machine alone."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def needs_token(self) -> bool:
        """Whether others can reach it, also through a proxy that calls it by a name: nobody is let in without a token."""
        return bool(self.hosts) or not self.is_local

    @property
    def own_names(self) -> frozenset[str]:
        """What the address it listens on is called in a request; an address that stands for all others has no name."""
        plain = self.host.lower().strip("[]")
        try:
            address = ipaddress.ip_address(plain)
        except ValueError:
            return frozenset({plain})
        if address.is_unspecified:
            return frozenset()
        return frozenset({plain, str(address)} if address.version == 4 else {f"[{plain}]", f"[{address}]"})
