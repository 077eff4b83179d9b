"""Decides which addresses may be delivered to: public ones, and those the operator allows. URLs come from users.

Checks the address that is connected to, which blocks DNS rebinding: a literal address when its URL is read, the addresses of a
name when they are looked up, and either again when the socket is made.
"""

from __future__ import annotations

import errno
import logging
import re
import socket
from collections.abc import Collection, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from tickler.errors import AddressRefused, InvalidInput

DEFAULT_PORTS = (80, 443)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
# As in aiohttp: family, type, protocol, canonical name, address.
AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int]]

# Listed, because `is_global` differs between Python versions and does not know Azure's metadata.
_NOT_PUBLIC: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), what)
    for network, what in (
        ("0.0.0.0/8", "not a host"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "behind a carrier's NAT, or a cloud's metadata"),
        ("127.0.0.0/8", "the worker itself"),
        ("168.63.129.16/32", "a cloud's metadata"),  # Azure's: a public number that only its own machines reach
        ("169.254.0.0/16", "link-local, such as a cloud's metadata"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "a relay to IPv6"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved, or broadcast"),
        ("::/128", "not a host"),
        ("::1/128", "the worker itself"),
        ("::/96", "IPv4 written as IPv6"),
        ("64:ff9b::/96", "IPv4 behind a translator"),
        ("64:ff9b:1::/48", "IPv4 behind a translator"),
        ("100::/64", "for discarding"),
        ("2001::/23", "reserved for protocols, Teredo among them"),
        ("2001:db8::/32", "for documentation"),
        ("2002::/16", "IPv4 written as IPv6 (6to4)"),
        ("3fff::/20", "for documentation"),
        ("5f00::/16", "for segment routing"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
# The only part of IPv6 that is assigned for public addresses.
_PUBLIC_V6 = IPv6Network("2000::/3")
_TRANSLATED_HERE = IPv6Network("64:ff9b:1::/48")
_TRANSLATED = (IPv6Network("64:ff9b::/96"), _TRANSLATED_HERE)
_TRANSLATOR_BITS = 96  # the only prefix length of a translator that is supported here
_COMPATIBLE = IPv6Network("::/96")

# Clouds hand out credentials here. Allowing the network around them does not allow these.
_METADATA = frozenset(
    map(
        ip_address,
        (
            *("169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "fe80::a9fe:a9fe"),  # most clouds; AWS, Google, OpenStack
            *("169.254.170.2", "169.254.170.23", "fd00:ec2::23"),  # containers on AWS
            *("168.63.129.16", "100.100.100.200", "192.0.0.192"),  # Azure, Alibaba, Oracle
            *("169.254.42.42", "fd00:42::42", "169.254.0.23", "169.254.10.10"),  # Scaleway, Tencent
        ),
    )
)

_HOST_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
# Some resolvers read these names as IPv4: 127.1, 0x7f.1, 2130706433, 127.0.0.1.
_ENDS_IN_A_NUMBER = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)\.?")
_LOCALHOST = re.compile(r"(.*\.)?localhost\.?")  # these names mean this machine (RFC 6761)
_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_ANY_PORT = "to allow it, on any port"
_REMEDY = f"name its network in allow_networks= or TICKLER_ALLOW_NETWORKS {_ANY_PORT}"
_METADATA_REMEDY = "name this very address in allow_networks= or TICKLER_ALLOW_NETWORKS to allow it"

log = logging.getLogger("tickler.deliver")


class PortRefused(AddressRefused):
    """A port that may not be connected to. The address is public, so the message may name it."""


class AddressGuard:
    """Allows addresses of `allow_networks` on any port, and public ones on `allow_ports`.

    A metadata address of a cloud is allowed only by itself, not by a network around it.
    """

    def __init__(self, allow_networks: Sequence[str] = (), allow_ports: Collection[int] = DEFAULT_PORTS) -> None:
        if isinstance(allow_networks, str):
            raise InvalidInput(f"allow_networks: {allow_networks!r} is a str: pass a list, such as ['10.0.0.0/8']")
        self._networks = [_read_network(network) for network in allow_networks]
        self._ports = frozenset(_checked_port(port) for port in allow_ports)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], allow_networks: Sequence[str] = ()) -> Self:
        """Read TICKLER_ALLOW_NETWORKS and TICKLER_ALLOW_PORTS, separated by commas, and add these networks."""
        ports = [_read_port(port) for port in _listed(environ, "TICKLER_ALLOW_PORTS")]
        networks = _listed(environ, "TICKLER_ALLOW_NETWORKS")
        for network in networks:
            _read_network(network, "TICKLER_ALLOW_NETWORKS")  # so that an error names the variable
        return cls([*allow_networks, *networks], ports or DEFAULT_PORTS)

    def check_url(self, url: str) -> URL:
        """Parse a URL, path and query unchanged. Raise `AddressRefused` if it is refused whatever its name resolves to."""
        try:
            # ASCII is sent unchanged: quoting it again would break signed URLs.
            parsed = URL(url, encoded=url.isascii())
            host, port = parsed.raw_host, parsed.port
            readable = bool(parsed.host) and not any(character <= " " or character == "\x7f" for character in url)
        except ValueError:
            parsed, host, port, readable = URL(), None, None, False
        if not readable or not host or parsed.scheme not in ("http", "https"):
            raise AddressRefused("the URL must start with http:// or https:// and name a host: write 'https://host/path'")
        if "@" in parsed.raw_authority:
            raise AddressRefused("the URL contains a user name, which would end up in logs: send a header instead")
        self._check_host(host.lower(), port or 0)
        return parsed

    def check_address(self, address: str, port: int) -> None:
        """Raise `AddressRefused` unless this address may be connected to at this port."""
        read = _read_address(address)
        inner = _embedded(read)
        if self._is_allowed(read):
            if inner is not None:
                self.check_address(str(inner), port)
            return
        for network, what in _NOT_PUBLIC:
            if read in network:
                disguise = "" if inner is None else f", which stands for {inner}"
                raise AddressRefused(f"{read} is {what} ({network}){disguise}: {self._remedy(read, network, inner)}")
        if isinstance(read, IPv6Address) and read not in _PUBLIC_V6:
            raise AddressRefused(f"{read} is not a public address: {_REMEDY}")
        self._check_port(port)

    def socket_to(self, info: AddressInfo) -> socket.socket:
        """Check an address for the last time, and return the socket with which aiohttp connects to it."""
        family, kind, protocol, _, address = info
        try:
            self.check_address(address[0], address[1])
        except AddressRefused as refused:
            raise PermissionError(errno.EACCES, str(refused)) from refused
        return socket.socket(family, kind, protocol)

    def _remedy(self, address: Address, network: Network, inner: IPv4Address | None) -> str:
        """Return how to allow an address, with the smallest network that does."""
        if address in _METADATA:
            return _METADATA_REMEDY
        if inner is not None:
            return _REMEDY
        needed = network if network in _LOOPBACK else address
        how = f"add {needed} to TICKLER_ALLOW_NETWORKS" if self._networks else f"set TICKLER_ALLOW_NETWORKS={needed}"
        return f"{how} where the worker runs, or pass it in allow_networks=, {_ANY_PORT}"

    def _is_allowed(self, address: Address) -> bool:
        bits = address.max_prefixlen if address in _METADATA else _TRANSLATOR_BITS if address in _TRANSLATED_HERE else 0
        return any(network.prefixlen >= bits and address in network for network in self._networks)

    def _check_host(self, host: str, port: int) -> None:
        if ":" in host:
            return self.check_address(host, port)
        if _ENDS_IN_A_NUMBER.fullmatch(host):
            try:
                plain = str(IPv4Address(host))
            except ValueError:
                raise AddressRefused(f"{host[:100]} is not a valid IPv4 address: write four decimal numbers") from None
            return self.check_address(plain, port)
        if len(host) > 254 or not _HOST_NAME.fullmatch(host):
            raise AddressRefused(f"{host[:100]!r} is not a valid host name: use letters, digits, '-' and '.'")
        if _LOCALHOST.fullmatch(host) and not any(self._is_allowed(network[0]) for network in _LOOPBACK):
            return self.check_address("127.0.0.1", port)
        return None  # name and port are checked when its addresses are known

    def _check_port(self, port: int) -> None:
        if port not in self._ports:
            allowed = ", ".join(str(port) for port in sorted(self._ports)) or "none"
            raise PortRefused(f"port {port} is not allowed ({allowed}): add it to allow_ports= or TICKLER_ALLOW_PORTS")


class GuardedResolver(AbstractResolver):
    """Filters the answers of another resolver: keeps the allowed addresses, and raises `AddressRefused` if there are none.

    One refused address does not spoil the others: in networks that translate IPv6 to IPv4, DNS adds a translated address.
    """

    def __init__(self, guard: AddressGuard, resolver: AbstractResolver) -> None:
        self._guard = guard
        self._resolver = resolver

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        allowed: list[ResolveResult] = []
        refusal: AddressRefused | None = None
        for answer in await self._resolver.resolve(host, port, family):
            try:
                self._guard.check_address(answer["host"], answer["port"])
                allowed.append(answer)
            except AddressRefused as refused:
                refusal = refused if refusal is None or isinstance(refused, PortRefused) else refusal
        if allowed:
            return allowed
        if isinstance(refusal, PortRefused):
            raise refusal
        if refusal is not None:
            # The address is only logged: otherwise users could explore names inside this network.
            log.warning("%s resolves to a blocked address: %s", host, refusal)
            raise AddressRefused(f"{host} resolves to a blocked address (see the worker's log): {_REMEDY}")
        raise OSError(errno.EADDRNOTAVAIL, "the name has no address")

    async def close(self) -> None:
        await self._resolver.close()


def _read_address(text: str) -> Address:
    """Parse an address without its scope; return IPv4 if it is IPv4 written as IPv6 (::ffff:…)."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        raise AddressRefused(f"{text[:100]!r} is not an IP address: write '203.0.113.7' or '[2001:db8::7]'") from None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def _embedded(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that packets to this IPv6 address reach."""
    if isinstance(address, IPv4Address) or address.is_loopback or address.is_unspecified:
        return None
    if any(address in network for network in (*_TRANSLATED, _COMPATIBLE)):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo else None)


def _listed(environ: Mapping[str, str], name: str) -> list[str]:
    return [item.strip() for item in environ.get(name, "").split(",") if item.strip()]


def _read_network(text: str, where: str = "allow_networks") -> Network:
    try:
        network = ip_network(text) if isinstance(text, str) else None
    except ValueError:
        network = None
    if network is None:
        raise InvalidInput(
            f"{where}: {text!r} is not a network: write '10.0.0.0/8' or 'fd12:3456:789a::/48', with no bits set after the prefix"
        )
    if isinstance(network, IPv6Network) and network.subnet_of(IPv6Network("::ffff:0:0/96")):
        raise InvalidInput(f"{where}: {text!r} is IPv4 written as IPv6: write it as IPv4, such as '10.0.0.0/8'")
    if isinstance(network, IPv6Network) and network.prefixlen < _TRANSLATOR_BITS and network.subnet_of(_TRANSLATED_HERE):
        raise InvalidInput(
            f"{where}: {text!r} is IPv4 behind a translator, with a prefix that is not supported: write '64:ff9b:1::/96', "
            f"or another prefix of at least {_TRANSLATOR_BITS} bits"
        )
    return network


def _read_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65_536):
        raise InvalidInput(f"TICKLER_ALLOW_PORTS: invalid port {text!r}: write numbers separated by commas, such as 80,443,8443")
    return int(text)


def _checked_port(port: int) -> int:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65_536:
        raise InvalidInput(f"allow_ports: invalid port {port!r}: pass whole numbers from 1 to 65535")
    return port
