"""Settings of an application's protection. Every default is the strict one for an application on this machine."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec

from tickler.errors import InvalidInput
from tickler.web.addresses import Proxies, proxies_of
from tickler.web.body_limits import BodyLimits
from tickler.web.host_check import LOCAL_NAMES
from tickler.web.security_headers import STRICT_POLICY
from tickler.web.sessions import HOST_PREFIX, SameSite, SessionSettings

ANY_HOST = "*"

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


class WebSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How an application is reached, and what it accepts. Paths are prefixes of whole segments: `/hooks` covers `/hooks/x`."""

    hosts: tuple[str, ...] = tuple(sorted(LOCAL_NAMES))  # names under which it may be called; ("*",) for any
    hosts_remedy: str = "add the name to `hosts`"  # how to allow another name, for whoever asks for one
    https: bool = False  # set it if browsers reach it over https, also through a proxy
    proxies: tuple[str, ...] = ()  # addresses and networks of reverse proxies, whose X-Forwarded-For is trusted; "unix": sockets
    foreign: tuple[str, ...] = ()  # paths of requests that others sign: no cross-site check there, and no session or token
    probes: tuple[str, ...] = ()  # paths of health checks: under any host name, and without looking up a visitor
    sign_in: str | None = "/sign-in"  # where browsers without a session are sent; None: they get the error
    cookie: str | None = None  # name of the session cookie; None: that of the application and "_session"
    session_s: int = 12 * 3600
    same_site: SameSite = "Lax"  # "Strict" also withholds the cookie when somebody follows a link to the application
    policy: str = STRICT_POLICY  # Content-Security-Policy
    hsts_s: int | None = None  # browsers use nothing but https for so long
    rate: float = 50.0  # requests a second, of one user, token or unknown address
    max_requests: int = 1_000  # at once; more get 503
    max_requests_of_client: int = 50  # of those; more get 429
    max_body: int = 1_048_576
    body_s: float = 20.0  # within which a body must arrive
    bodies: Mapping[str, int | None] = {}  # other limits of bodies, by path; None: a stream of any length

    def __post_init__(self) -> None:
        self.trusted_proxies  # noqa: B018  # raises for an invalid one
        for path in (*self.foreign, *self.probes, *self.bodies, *([] if self.sign_in is None else [self.sign_in])):
            if not path.startswith("/"):
                raise InvalidInput(f"{path!r} is not a path: start it with a slash")
        if any(path.strip("/") == "" for path in (*self.foreign, *self.probes)):
            raise InvalidInput(
                "'/' covers the whole application: name the paths of webhooks in foreign, of health checks in probes"
            )
        positive = ("rate", "max_requests", "max_requests_of_client", "max_body", "body_s")
        for name in positive:
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{name}: {getattr(self, name)!r} is not greater than 0")

    @property
    def trusted_proxies(self) -> Proxies:
        try:
            return proxies_of(self.proxies)
        except ValueError as error:
            raise InvalidInput(f"proxies: {error}: pass addresses, networks such as '10.0.0.0/8', or 'unix'") from None

    def session(self, name: str) -> SessionSettings:
        """Return the cookie's settings for the application of this name, which no other on the host shares."""
        cookie = f"{HOST_PREFIX if self.https else ''}{self.cookie or f'{name}_session'}"
        return SessionSettings(cookie=cookie, lifetime_s=self.session_s, secure=self.https, same_site=self.same_site)

    def is_foreign(self, path: str) -> bool:
        return is_below(path, self.foreign)

    def is_probe(self, path: str) -> bool:
        return is_below(path, self.probes)

    def body_limits(self, path: str) -> BodyLimits:
        longest = max((prefix for prefix in self.bodies if is_below(path, (prefix,))), key=len, default=None)
        if longest is None:
            return BodyLimits(self.max_body, self.body_s)
        most = self.bodies[longest]
        return BodyLimits(None, None) if most is None else BodyLimits(most, self.body_s)


def is_below(path: str, prefixes: Collection[str]) -> bool:
    """Return whether a path is one of the prefixes, or lies below one."""
    return any(path == prefix.rstrip("/") or path.startswith(f"{prefix.rstrip('/')}/") for prefix in prefixes)


def check_application_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"name: {name!r} is invalid: use up to 32 lower-case letters, digits and -, such as 'slothpost'")
