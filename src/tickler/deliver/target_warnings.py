"""Warns of a target whose URL the address guard would refuse, before anything is sent to it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from ipaddress import ip_address
from urllib.parse import urlsplit

from tickler.errors import AddressRefused, InvalidInput
from tickler.model.target import HttpTarget, Target


def target_warnings(target: Target | str | None, environ: Mapping[str, str], allow_networks: tuple[str, ...]) -> list[str]:
    """Return why a worker with these settings would not deliver to the target, judged by its URL alone, without a lookup.

    These are warnings, since the settings of the worker that delivers decide.
    """
    url = target.url if isinstance(target, HttpTarget) else target
    if not isinstance(url, str) or not _names_an_address(url):
        return []
    try:
        guard = import_module("tickler.deliver.address_guard")
        settings = guard.AddressGuard.from_environment(environ, allow_networks)
    except (ModuleNotFoundError, InvalidInput):
        return []  # no package, or invalid settings: this process delivers nothing
    try:
        settings.check_url(url)
    except AddressRefused as refused:
        return [f"a worker with the settings of this process would not deliver it: {refused}"]
    return []


def _names_an_address(url: str) -> bool:
    """Return whether the host is an address or localhost: other names would have to be looked up."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or bool(ip_address(host))
    except ValueError:
        return False
