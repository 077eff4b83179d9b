"""What an operator should know of the receivers of events before the first event is sent."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from pricebook.app import Settings
from pricebook.events import Receiver

LOOPBACK = "127.0.0.0/8"


def receiver_hints(settings: Settings, also_allowed: Sequence[str] = ()) -> list[str]:
    """Return which receivers cannot be reached as things are set, and how each gets its secret. Names are not looked up."""
    if not settings.receivers:
        return []
    allowed = [ipaddress.ip_network(each) for each in (*settings.allow_networks, *also_allowed)]
    hints = list(_refused(settings.receivers, allowed))
    return [*hints, "`pricebook receiver secret ADDRESS` makes the secret with which a receiver checks its events"]


def _refused(receivers: Sequence[str], allowed: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> Iterator[str]:
    for url in dict.fromkeys(Receiver.read(each).url for each in receivers):
        found = _address(url)
        if found is None or found.is_global or any(found in network for network in allowed):
            continue
        needed = LOOPBACK if found in ipaddress.ip_network(LOOPBACK) else str(found)
        yield f"warning: {url} gets no events, since its address is not public: add {needed} to PRICEBOOK_ALLOW_NETWORKS"


def _address(url: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return None
