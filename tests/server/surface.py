"""Every route of the service with its scope, read from the app."""

from __future__ import annotations

from typing import NamedTuple

from tickler.server.app import routes


class Route(NamedTuple):
    """A method of a path; `scope` is None if it is not declared."""

    method: str
    path: str
    scope: str | None
    all_owners: bool

    def at(self, owner: str = "u1", key: str = "digest", fire_id: str = "fire_0") -> str:
        """Return a path of the route."""
        return self.path.format(owner=owner, key=key, fire_id=fire_id, change="pause", name="style.css")

    @property
    def is_api(self) -> bool:
        return self.path.startswith(("/v1/", "/health/", "/metrics"))


def every_route() -> list[Route]:
    """Return all routes, in the same order in every process."""
    return sorted(
        Route(method, route.path_format, handler.opt.get("scope"), bool(handler.opt.get("all_owners")))
        for route in routes().routes
        for handler in getattr(route, "route_handlers", ())
        for method in sorted(handler.http_methods)
        if method != "OPTIONS"
    )
