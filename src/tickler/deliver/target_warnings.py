"""What is known of a target before anything is sent to it: that the address guard would refuse its URL."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from ipaddress import ip_address
from urllib.parse import urlsplit

from tickler.errors import InvalidInput
from tickler.model.target import HttpTarget, Target


def target_warnings(target: Target | str | None, environ: Mapping[str, str], allow_networks: tuple[str, ...]) -> list[str]:
    """Why a worker with these settings would not deliver to it, as far as its URL tells. Nothing is looked up.

    No refusal: the worker's own settings decide.
    """
    url = target.url if isinstance(target, HttpTarget) else target
    if not isinstance(url, str) or not _names_an_address(url):
        return []
    try:
        guard = import_module("tickler.deliver.address_guard")
        settings = guard.AddressGuard.from_environment(environ, allow_networks)
    except (ModuleNotFoundError, InvalidInput):
        return []  # without its package, or with settings that do not read, nothing is delivered from here
    try:
        settings.check_url(url)
    except guard.AddressRefused as refused:
        return [f"a worker with the settings of this process would not deliver it: {refused}"]
    return []


def _names_an_address(url: str) -> bool:
    """Whether the host is an address, or this machine's own name: what other names lead to is not known here."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or bool(ip_address(host))
    except ValueError:
        return False
