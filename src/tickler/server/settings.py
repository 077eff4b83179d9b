"""What an operator can say about the service."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from tickler.errors import InvalidInput

DEFAULT_PORT = 8321


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Each has a variable in the environment: TICKLER_ and its name in upper case."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = DEFAULT_PORT
    hosts: tuple[str, ...] = ()  # names by which others may call it, besides where it listens; for further ones 421
    rate: Annotated[float, Meta(gt=0)] = 200.0  # requests a second that one token may make, and twice as many at once
    max_body: Annotated[int, Meta(ge=1)] = 1_048_576  # bytes; an import is a stream, and each of its lines may be as long
    body_s: Annotated[float, Meta(gt=0)] = 20.0  # for a request to arrive in
    secure_cookie: bool = False  # set it where the page is reached by https

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **flags: object) -> Self:
        """Flags that are not None come first, then the environment, then the defaults."""
        given = {
            name: environ[f"TICKLER_{name.upper()}"] for name in cls.__struct_fields__ if f"TICKLER_{name.upper()}" in environ
        }
        values: dict[str, object] = {**given, **{name: value for name, value in flags.items() if value is not None}}
        if isinstance(values.get("hosts"), str):
            values["hosts"] = [name.strip() for name in str(values["hosts"]).split(",") if name.strip()]
        try:
            settings = msgspec.convert(values, cls, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"the service's settings do not fit: {error}: see the settings table in the docs") from None
        return settings

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
