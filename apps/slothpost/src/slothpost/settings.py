"""What an operator sets, from the environment. Everything has a default but the credentials of other people's services."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
import msgspec.structs

from slothpost.demo_links import DemoLinks
from slothpost.drafting.drafter_settings import DrafterSettings
from slothpost.errors import InvalidField
from slothpost.networks.threads import ThreadsSettings
from slothpost.networks.x import XSettings
from slothpost.sources.source_settings import SourceSettings

DEFAULT_PORT = 8322
MIN_SECRET = 16

_URLS = ("api_url", "authorize_url", "site_url")

N = TypeVar("N", XSettings, ThreadsSettings)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`base_url` is how browsers and webhooks reach this installation. Networks without credentials cannot be connected."""

    store: str = "sqlite:///slothpost.db"
    table: str = "slothpost"  # its name, on DynamoDB
    base_url: str = f"http://127.0.0.1:{DEFAULT_PORT}"
    proxies: tuple[str, ...] = ()
    tick_secret: str | None = None  # of an outside cron; without one, there is no /tick
    x: XSettings | None = None
    threads: ThreadsSettings | None = None
    sources: SourceSettings = SourceSettings()
    drafters: DrafterSettings = DrafterSettings()
    allow_networks: tuple[str, ...] = ()  # private networks that deliveries and fetched addresses may be in
    demo: DemoLinks | None = None  # not of the environment: what `serve --demo` starts beside slothpost

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise InvalidField(
                "SLOTHPOST_URL", f"{self.base_url!r} is not an address without a path, such as https://posts.example.com"
            )
        if self.tick_secret is not None and len(self.tick_secret) < MIN_SECRET:
            remedy = "such as what `openssl rand -hex 32` prints, since others could guess it"
            raise InvalidField("SLOTHPOST_TICK_SECRET", f"use at least {MIN_SECRET} characters, {remedy}")

    def __repr__(self) -> str:
        return f"<Settings of {self.base_url}>"  # the rest has credentials

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
        """Read the variables that the guide lists, all of which begin with SLOTHPOST_."""
        found = {
            name.removeprefix("SLOTHPOST_").lower(): value for name, value in environ.items() if name.startswith("SLOTHPOST_")
        }
        _check_names(found)
        port = found.get("port", str(DEFAULT_PORT))
        if not port.isdecimal() or not 0 < int(port) < 65_536:
            raise InvalidField("SLOTHPOST_PORT", f"{port!r} is not a port: use a number up to 65535")
        return cls(
            store=found.get("store", "sqlite:///slothpost.db"),
            table=found.get("table", "slothpost"),
            base_url=found.get("url", f"http://127.0.0.1:{port}"),
            proxies=_list(found, "proxies"),
            tick_secret=found.get("tick_secret") or None,
            x=_x(found),
            threads=_threads(found),
            sources=SourceSettings(**_of(found, SourceSettings)),
            drafters=DrafterSettings(**_of(found, DrafterSettings)),
            allow_networks=_list(found, "allow_networks"),
        )


def known_variables() -> frozenset[str]:
    """Return the names of all variables that are read, without SLOTHPOST_ and in lower case."""
    known = {"store", "table", "url", "port", "proxies", "tick_secret", "allow_networks"}
    known |= {f"x_{name}" for name in ("client_id", "client_secret", *_URLS)}
    known |= {f"threads_{name}" for name in ("client_id", "client_secret", *_URLS)}
    known |= {field.name for kind in (SourceSettings, DrafterSettings) for field in msgspec.structs.fields(kind)}
    return frozenset(known)


def _check_names(found: Mapping[str, str]) -> None:
    """Raise `InvalidField` for a variable that nothing reads: it is misspelled."""
    known = known_variables()
    for name in sorted(found.keys() - known):
        close = get_close_matches(name, known, n=1)
        remedy = f"did you mean SLOTHPOST_{close[0].upper()}?" if close else "remove it"
        raise InvalidField(f"SLOTHPOST_{name.upper()}", f"there is no such variable: {remedy}")


def _x(found: Mapping[str, str]) -> XSettings | None:
    client_id = found.get("x_client_id")
    if client_id is None:
        return None
    return _at_its_urls(XSettings(client_id=client_id, client_secret=found.get("x_client_secret") or None), found, "x")


def _threads(found: Mapping[str, str]) -> ThreadsSettings | None:
    client_id, secret = found.get("threads_client_id"), found.get("threads_client_secret")
    if client_id is None:
        return None
    if not secret:
        raise InvalidField("SLOTHPOST_THREADS_CLIENT_SECRET", "it is missing: Threads issues one with the client id")
    return _at_its_urls(ThreadsSettings(client_id=client_id, client_secret=secret), found, "threads")


def _at_its_urls(network: N, found: Mapping[str, str], name: str) -> N:
    """Return the settings of a network with the addresses that the environment gives it."""
    urls = {url: value for url in _URLS if (value := found.get(f"{name}_{url}"))}
    return msgspec.structs.replace(network, **urls)


def _of(found: Mapping[str, str], kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return the variables that are named like the fields of a group of settings, all of which are texts."""
    return {field.name: found[field.name] for field in msgspec.structs.fields(kind) if found.get(field.name)}


def _list(found: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in found.get(name, "").split(",") if part.strip())
