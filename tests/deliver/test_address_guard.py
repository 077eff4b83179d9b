"""The address guard: which addresses it refuses before anything is connected, and which it allows.

Nothing here opens a connection to anything but loopback: where an address is hostile or public, connecting is switched off.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterator, Sequence

import aiohttp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from deliver.hostile_sinks import DnsResolver, FickleDns, ScriptedResolver, Sink, answers
from tickler.clock import ManualClock
from tickler.deliver.address_guard import AddressGuard, GuardedResolver
from tickler.deliver.targets.http import HttpDeliverer
from tickler.errors import AddressRefused, InvalidInput
from tickler.model.delivery import Delivery, Outcome
from tickler.model.target import HttpTarget

GUARD = AddressGuard()
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

# What a DNS would say of the names below.
NAMES = {
    "localhost": ["127.0.0.1", "::1"],
    "localhost.": ["127.0.0.1"],
    "localhost.localdomain": ["127.0.0.1"],
    "LOCALHOST": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "metadata": ["169.254.169.254"],
    "instance-data.ec2.internal": ["169.254.169.254"],
    "127.0.0.1.nip.example": ["127.0.0.1"],
    "private.example": ["10.0.0.5", "192.168.1.1", "fd00::1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "translated.example": ["64:ff9b::7f00:1"],
    "link-local.example": ["fe80::1%eth0"],
    "azure.example": ["168.63.129.16"],
    "xn--lcalhost-v3a": ["127.0.0.1"],
    "nobody.example": ["0.0.0.0"],
    "everybody.example": ["255.255.255.255"],
    "public.example": ["8.8.8.8"],
}

HOSTILE_URLS = [
    # This machine, in every way it can be written.
    "http://127.0.0.1/",
    "http://127.0.0.1:80/",
    "https://127.0.0.1/",
    "http://127.255.255.254/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.0.0.1./",
    "http://127.0.0.1../",
    "http://2130706433/",
    "http://2130706433./",
    "http://0x7f000001/",
    "http://0X7F000001/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0x7f.1/",
    "http://0x/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://127.0.0.01/",
    "http://0000127.0.0.1/",
    "http://127.0.0.0x1/",
    "http://1.2.3.4.5/",
    "http://256.256.256.256/",
    "http://%31%32%37.0.0.1/",
    "http://127.0.0.1%00.public.example/",
    "http://127.0.0.1%2f.public.example/",
    "http://①②⑦.0.0.1/",
    "http://１２７.０.０.１/",
    "http://127。0。0。1/",
    "http://127．0．0．1/",
    "http://127｡0｡0｡1/",
    "http://０x7f.1/",
    "http://𝟏𝟐𝟕.𝟎.𝟎.𝟏/",
    "http://1⑦2.16.0.1/",
    "http://\u00ad127.0.0.1/",
    "http://127.0.0.1\u200b/",
    "http://0.0.0.0/",
    "http://0/",
    "http://0.1.2.3/",
    "http://[::1]/",
    "http://[::1]:443/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::]/",
    "http://[::1%25eth0]/",
    "http://[::1%eth0]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::FFFF:7F00:1]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:127.0.0.1%251]/",
    "http://localhost/",
    "http://localhost./",
    "http://LOCALHOST/",
    "http://ⓛocalhost/",
    "http://localhost.localdomain/",
    "http://127.0.0.1.nip.example/",
    "http://lócalhost/",
    # Networks next door.
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://192.0.0.1/",
    "http://198.18.0.1/",
    "http://[fc00::1]/",
    "http://[fdff:ffff::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fec0::1]/",
    "http://private.example/",
    "http://link-local.example/",
    # Where clouds keep their secrets.
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.170.2/v2/credentials",
    "http://2852039166/latest/meta-data/",
    "http://0xA9FEA9FE/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[fd00:ec2::254]/",
    "http://[fd20:ce::254]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://[::ffff:168.63.129.16]/",
    "http://192.0.0.192/opc/v2/instance/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://metadata/",
    "http://instance-data.ec2.internal/",
    "http://azure.example/",
    # IPv4 inside IPv6.
    "http://[2002:0a00:0001::]/",
    "http://[2002:7f00:1::1]/",
    "http://[2002:808:808::1]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[64:ff9b::8.8.8.8]/",
    "http://[64:ff9b:1::a00:1]/",
    "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "http://[2001:0:0:0:0:0:f5ff:fffe]/",
    "http://mapped.example/",
    "http://translated.example/",
    # Nobody and everybody.
    "http://224.0.0.1/",
    "http://239.255.255.250/",
    "http://255.255.255.255/",
    "http://240.0.0.1/",
    "http://[ff02::1]/",
    "http://[ff0e::1]/",
    "http://nobody.example/",
    "http://everybody.example/",
    # Set aside for books, tests and routers.
    "http://192.0.2.1/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    "http://192.88.99.1/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[100::1]/",
    "http://[5f00::1]/",
    "http://[2001:2::1]/",
    "http://[4000::1]/",
    # Other ports and schemes.
    "http://8.8.8.8:22/",
    "http://8.8.8.8:0/",
    "http://8.8.8.8:8080/",
    "http://8.8.8.8:99999/",
    "http://8.8.8.8:-1/",
    "http://public.example:6379/",
    "http://public.example:25/",
    "https://[2606:4700::1]:8443/",
    "file:///etc/passwd",
    "gopher://8.8.8.8:70/_x",
    "ftp://8.8.8.8/",
    "ws://8.8.8.8/",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "unix:///var/run/docker.sock",
    "dict://8.8.8.8:2628/",
    "javascript:alert(1)",
    "//8.8.8.8/",
    "8.8.8.8",
    "http:8.8.8.8",
    "http:///etc/passwd",
    "",
    # Whose host is another than it seems.
    "http://8.8.8.8@127.0.0.1/",
    "http://user:password@8.8.8.8/",
    "http://@8.8.8.8/",
    "http://:@8.8.8.8/",
    "http://8.8.8.8\\@127.0.0.1/",
    "http://127.0.0.1\\.public.example/",
    "http://8.8.8.8 .example/",
    "http://8.8.8.8\r\nHost: other/",
    "http://public.example/\nx",
    "http://public.example\t/",
    "http://[::1/",
    "http://[::1].example/",
    "http://[127.0.0.1]/",
    "http://[]/",
    "http://./",
    "http://../",
    "http://a..b/",
    "http://.public.example/",
    f"http://{'a' * 64}.example/",
    f"http://{'a.' * 130}example/",
    "http://xn--/",
    "http://a／b.example/",
    "http://a℀b.example/",
]


class Connections(list[object]):
    """An address that would have been connected to."""


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    """Records what would be connected to, and sends nothing: neither a packet nor a DNS query."""
    seen = Connections()

    async def sock_connect(loop: object, sock: socket.socket, address: object) -> None:
        seen.append(address)
        raise ConnectionRefusedError(111, "not in this test")

    def getaddrinfo(*args: object, **kwargs: object) -> None:
        seen.append(args)
        raise socket.gaierror(socket.EAI_NONAME, "not in this test")

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", sock_connect)
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return seen


def http_target(url: str) -> HttpTarget:
    """Return a target whose URL was not checked."""
    target = HttpTarget("https://example.org")
    force_setattr(target, "url", url)
    return target


async def secrets_of(delivery: Delivery, target: HttpTarget) -> Sequence[str]:
    return [SECRET]


async def deliver(guard: AddressGuard, resolver: aiohttp.abc.AbstractResolver | None, url: str, times: int = 1) -> list[Outcome]:
    delivery = Delivery(
        id="fire_1",
        owner="u1",
        key="k",
        nominal_at=1_780_000_000_000,
        attempt=1,
        payload=None,
        target=None,
        timeout_s=5,
        started_at=0,
    )
    clock = ManualClock(1_780_000_000_000)
    deliverer = HttpDeliverer(guard, secrets_of, lambda target, owner: target, clock, resolver=resolver)
    await deliverer.open()
    try:
        return [await deliverer.deliver(delivery, http_target(url)) for _ in range(times)]
    finally:
        await deliverer.close()


@pytest.mark.parametrize("url", HOSTILE_URLS, ids=ascii)
async def test_a_hostile_address_is_refused_before_anything_is_connected(url: str, connections: Connections) -> None:
    (outcome,) = await deliver(GUARD, ScriptedResolver(NAMES), url)
    assert (outcome.verdict, outcome.status) == ("give_up", 0)
    assert ": " in (outcome.detail or "")  # what it is, and what to do
    assert connections == []


def test_the_table_of_hostile_addresses_is_long_enough() -> None:
    assert len(set(HOSTILE_URLS)) == len(HOSTILE_URLS) >= 60


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://8.8.8.8/", ("8.8.8.8", 80)),
        ("https://8.8.8.8:443/", ("8.8.8.8", 443)),
        ("https://8.8.8.8:80/", ("8.8.8.8", 80)),
        ("https://[2606:4700::1111]/", ("2606:4700::1111", 443, 0, 0)),
        ("http://[::ffff:8.8.8.8]/", ("::ffff:8.8.8.8", 80, 0, 0)),
        ("http://PUBLIC.example/", ("8.8.8.8", 80)),
        ("http://172.15.255.255/", ("172.15.255.255", 80)),
        ("http://172.32.0.0/", ("172.32.0.0", 80)),
    ],
)
async def test_a_public_address_would_be_connected_to(url: str, address: object, connections: Connections) -> None:
    (outcome,) = await deliver(GUARD, ScriptedResolver({**NAMES, "PUBLIC.example": ["8.8.8.8"]}), url)
    assert outcome.verdict == "retry"
    assert connections == [address]


@pytest.mark.parametrize("address", ["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
                                     "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0",
                                     "192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
                                     "223.255.255.255", "2000::1", "2001:200::1", "2003::1", "2a00:1450:4001::200e",
                                     "2606:4700:4700::1111", "3ffe::1", "::ffff:1.1.1.1"])  # fmt: skip
def test_a_public_address_is_allowed_at_the_usual_ports_only(address: str) -> None:
    GUARD.check_address(address, 80)
    GUARD.check_address(address, 443)
    with pytest.raises(AddressRefused, match=r"port 8443 is not allowed \(80, 443\): add it to .*TICKLER_ALLOW_PORTS"):
        GUARD.check_address(address, 8443)
    AddressGuard(allow_ports=[8443]).check_address(address, 8443)


# Written down once more, from IANA's registries of special addresses, as first and last: a second reading to check against.
SPECIAL_V4 = [
    ("0.0.0.0", "0.255.255.255"),
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    ("168.63.129.16", "168.63.129.16"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "255.255.255.255"),
]
SPECIAL_V6 = [
    ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
]
MAPPED = 0xFFFF << 32


def allows(address: ipaddress.IPv4Address | ipaddress.IPv6Address, guard: AddressGuard = GUARD) -> bool:
    try:
        guard.check_address(str(address), 443)
    except AddressRefused:
        return False
    return True


def is_special(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if address.version == 6 and int(address) >> 32 == 0xFFFF:
        address = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    kind = type(address)
    ranges = SPECIAL_V4 if address.version == 4 else SPECIAL_V6
    return any(int(kind(first)) <= int(address) <= int(kind(last)) for first, last in ranges)


def edges() -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The first and last address of each range, and their neighbours."""
    for kind, ranges in ((ipaddress.IPv4Address, SPECIAL_V4), (ipaddress.IPv6Address, SPECIAL_V6)):
        most = int(kind(ranges[-1][1]))
        for first, last in ranges:
            for number in (int(kind(first)) - 1, int(kind(first)), int(kind(last)), int(kind(last)) + 1):
                if 0 <= number <= most:
                    yield kind(number)


@pytest.mark.parametrize("address", list(dict.fromkeys(edges())), ids=str)
def test_at_the_edges_the_guard_agrees_with_a_second_reading(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert allows(address) is not is_special(address)


@given(st.ip_addresses() | st.integers(0, 2**32 - 1).map(lambda number: ipaddress.IPv6Address(MAPPED | number)))
@example(ipaddress.IPv4Address("168.63.129.16"))
@example(ipaddress.IPv6Address("::ffff:168.63.129.16"))
def test_the_guard_agrees_with_a_second_reading(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert allows(address) is not is_special(address)


@given(st.ip_addresses())
def test_what_the_guard_allows_is_global_to_python_too(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if allows(address):
        plain = getattr(address, "ipv4_mapped", None) or address
        assert plain.is_global
        assert not plain.is_multicast


@given(st.ip_addresses(v=4))
def test_ipv4_that_is_hidden_in_ipv6_is_never_reached_where_it_would_be_refused(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    hidden = [
        ipaddress.IPv6Address(number),
        ipaddress.IPv6Address(MAPPED | number),
        ipaddress.IPv6Address(0x2002 << 112 | number << 80 | 1),
        ipaddress.IPv6Address(0x64FF9B << 96 | number),
        ipaddress.IPv6Address(0x64FF9B0001 << 80 | number),
        ipaddress.IPv6Address(0x20010000 << 96 | number ^ 0xFFFF_FFFF),
    ]
    wide = AddressGuard(["::/0"])  # an operator who trusts IPv6, and has a translator in it
    for each in hidden:
        if not allows(address):
            assert not allows(each)
            assert not allows(each, wide) or each in (ipaddress.IPv6Address("::"), ipaddress.IPv6Address("::1"))


def test_a_refusal_says_what_the_address_is_and_how_to_allow_it() -> None:
    with pytest.raises(AddressRefused) as refused:
        GUARD.check_address("64:ff9b::a9fe:a9fe", 80)
    assert str(refused.value) == (
        "64:ff9b::a9fe:a9fe is IPv4 behind a translator (64:ff9b::/96), which stands for 169.254.169.254: "
        "name its network in allow_networks= or TICKLER_ALLOW_NETWORKS to allow it, on any port"
    )


@pytest.mark.parametrize(
    ("url", "networks", "how"),
    [
        (
            "http://127.0.0.1:8000/hook",
            [],
            "127.0.0.1 is the worker itself (127.0.0.0/8): set TICKLER_ALLOW_NETWORKS=127.0.0.0/8",
        ),
        (
            "http://localhost:8000/hook",
            [],
            "127.0.0.1 is the worker itself (127.0.0.0/8): set TICKLER_ALLOW_NETWORKS=127.0.0.0/8",
        ),
        (
            "http://app.localhost.:8000/",
            [],
            "127.0.0.1 is the worker itself (127.0.0.0/8): set TICKLER_ALLOW_NETWORKS=127.0.0.0/8",
        ),
        ("http://[::1]:8000/", [], "::1 is the worker itself (::1/128): set TICKLER_ALLOW_NETWORKS=::1/128"),
        ("http://localhost:8000/", ["10.0.0.0/8"], "127.0.0.1 is the worker itself (127.0.0.0/8): add 127.0.0.0/8 to TICKLER_A"),
        ("http://10.1.2.3:8000/", [], "10.1.2.3 is private (10.0.0.0/8): set TICKLER_ALLOW_NETWORKS=10.1.2.3 where"),
    ],
)
def test_a_refusal_of_an_address_inside_names_the_one_variable_that_is_needed(url: str, networks: list[str], how: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        AddressGuard(networks).check_url(url)
    assert str(refused.value).startswith(how)
    assert str(refused.value).endswith("to allow it, on any port")
    needed = how.partition("TICKLER_ALLOW_NETWORKS=")[2].partition(" ")[0] or "127.0.0.0/8"
    AddressGuard([*networks, needed]).check_url(url)


async def test_a_name_of_an_address_inside_is_refused_for_its_network_before_its_port(connections: Connections) -> None:
    resolver = ScriptedResolver({"backend": ["10.0.0.1"]})
    (refused,) = await deliver(GUARD, resolver, "http://backend:8000/hook")
    assert (refused.verdict, connections) == ("give_up", [])
    assert "backend resolves to a blocked address (see the worker's log)" in (refused.detail or "")
    assert (refused.detail or "").endswith("to allow it, on any port")
    assert (await deliver(AddressGuard(["10.0.0.1"]), resolver, "http://backend:8000/hook"))[0].verdict == "retry"
    assert connections == [("10.0.0.1", 8000)], "with what was asked for, and nothing else"


@pytest.mark.parametrize("text", ["", "example.org", "1.2.3", "1.2.3.4.5", "127.1", "0x7f000001", "::g", "١.١.١.١", " 8.8.8.8"])
def test_what_is_no_address_is_refused_as_none(text: str) -> None:
    with pytest.raises(AddressRefused, match="is not an IP address: write"):
        GUARD.check_address(text, 80)


@pytest.mark.parametrize(
    ("networks", "allowed", "refused"),
    [
        (
            ["127.0.0.0/8"],
            ["127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1"],
            ["10.0.0.1", "::1", "64:ff9b::7f00:1", "2002:7f00:1::"],
        ),
        (["127.0.0.1"], ["127.0.0.1"], ["127.0.0.2"]),
        (["10.0.0.0/8", "fd00::/8"], ["10.1.2.3", "fd12::1"], ["192.168.0.1", "fc00::1", "127.0.0.1", "fd00:ec2::254"]),
        (["64:ff9b:1::/96"], ["64:ff9b:1::5.9.9.9"], ["64:ff9b:1::10.0.0.1", "64:ff9b:1:0:0:1::5.9.9.9"]),
        (["64:ff9b:1:2::/96", "10.0.0.0/8"], ["64:ff9b:1:2::10.0.0.1"], ["64:ff9b:1:2::192.168.0.1", "64:ff9b:1::10.0.0.1"]),
        (["::/0", "64:ff9b::/32"], ["fd12::1"], ["64:ff9b:1:a9fe:a9:fe00:808:808", "64:ff9b:1::8.8.8.8"]),
        (["::1"], ["::1", "::1%lo"], ["::", "::2", "127.0.0.1"]),
        (["fe80::/10"], ["fe80::1%eth0", "fe80::1"], ["fec0::1"]),
        (["64:ff9b::/96"], ["64:ff9b::5.9.9.9"], ["64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254"]),
        (["64:ff9b::/96", "10.0.0.0/8"], ["64:ff9b::5.9.9.9"], ["64:ff9b::169.254.169.254", "2002:a00:1::"]),
        (["0.0.0.0/0"], ["10.0.0.1", "127.0.0.1", "255.255.255.255"], ["::1"]),
        ([], [], ["127.0.0.1", "10.0.0.1", "::1"]),
    ],
)
def test_networks_that_are_allowed_are_allowed_and_no_others(networks: list[str], allowed: list[str], refused: list[str]) -> None:
    guard = AddressGuard(networks)
    for address in allowed:
        guard.check_address(address, 80)
    for address in refused:
        with pytest.raises(AddressRefused):
            guard.check_address(address, 80)


METADATA = [
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "192.0.0.192", "168.63.129.16",
    "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fe80::a9fe:a9fe",
]  # fmt: skip


@pytest.mark.parametrize("address", METADATA)
def test_the_metadata_of_clouds_is_allowed_by_its_own_address_alone(address: str) -> None:
    around = ipaddress.ip_network((address, 24 if "." in address else 64), strict=False)
    for networks in (["0.0.0.0/0", "::/0"], [str(around)], [str(around), "64:ff9b::/96"]):
        with pytest.raises(AddressRefused, match="name this very address in allow_networks="):
            AddressGuard(networks).check_address(address, 80)
        if "." in address:
            for hidden in (f"::ffff:{address}", f"64:ff9b::{address}"):
                with pytest.raises(AddressRefused):
                    AddressGuard(networks).check_address(hidden, 80)
    AddressGuard([address]).check_address(address, 80)
    AddressGuard([str(around), address]).check_address(address, 80)


@pytest.mark.parametrize("network", ["64:ff9b:1::/48", "64:ff9b:1::/64", "64:ff9b:1:2::/95"])
def test_a_translators_prefix_is_allowed_only_where_the_address_in_it_can_be_read(network: str) -> None:
    with pytest.raises(InvalidInput, match=r"behind a translator.* write '64:ff9b:1::/96'") as refused:
        AddressGuard([network])
    assert repr(network) in str(refused.value)


def test_a_network_that_is_allowed_is_so_at_every_port() -> None:
    guard = AddressGuard(["10.0.0.0/8"])
    guard.check_address("10.0.0.1", 6379)
    guard.check_url("http://10.0.0.1:6379/")
    guard.check_url("http://inside.example:6379/")  # its addresses will tell
    with pytest.raises(AddressRefused, match="port 6379"):
        guard.check_address("8.8.8.8", 6379)


async def test_a_name_at_another_port_is_reached_inside_an_allowed_network_only(connections: Connections) -> None:
    resolver = ScriptedResolver({"inside.example": ["10.0.0.1"], "outside.example": ["8.8.8.8"]})
    guard = AddressGuard(["10.0.0.0/8"])
    (refused,) = await deliver(guard, resolver, "http://outside.example:8080/")
    assert (refused.verdict, connections) == ("give_up", [])
    assert "port 8080 is not allowed (80, 443): add it to allow_ports=" in (refused.detail or "")
    assert (await deliver(guard, resolver, "http://inside.example:8080/"))[0].verdict == "retry"
    assert connections == [("10.0.0.1", 8080)]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("https://example.org", "/"),
        ("https://example.org/a%2Fb/%7e/../c?x=%2f&y=a+b&sig=%2B%3D", "/a%2Fb/%7e/../c?x=%2f&y=a+b&sig=%2B%3D"),
        ("https://EXAMPLE.org/Path?#part", "/Path"),
        ("https://bücher.example/ä?ö=ü", "/%C3%A4?%C3%B6=%C3%BC"),
        ("https://example.org/user:name@path?q=a@b", "/user:name@path?q=a@b"),
    ],
)
def test_path_and_query_are_asked_for_as_they_were_written(written: str, sent: str) -> None:
    assert GUARD.check_url(written).raw_path_qs == sent


def test_a_name_that_is_not_ascii_is_looked_up_as_dns_has_it() -> None:
    assert GUARD.check_url("https://bücher.example/").raw_host == "xn--bcher-kva.example"


@pytest.mark.parametrize(
    "network", ["10.0.0.1/8", "10.0.0.0/33", "localhost", "", "10.0.0.0-10.0.0.9", "::ffff:10.0.0.0/104", 10, None]
)
def test_what_is_no_network_is_refused_by_its_value(network: object) -> None:
    with pytest.raises(InvalidInput, match="allow_networks: ") as refused:
        AddressGuard([network])  # type: ignore[list-item]  # wrong types are the point
    assert repr(network) in str(refused.value)


def test_one_text_is_no_list_of_networks() -> None:
    with pytest.raises(InvalidInput, match=r"allow_networks: '10\.0\.0\.0/8' is a str: pass a list"):
        AddressGuard("10.0.0.0/8")


@pytest.mark.parametrize("port", [0, -1, 65_536, True, "80", 80.0])
def test_what_is_no_port_is_refused_by_its_value(port: object) -> None:
    with pytest.raises(InvalidInput, match="allow_ports: ") as refused:
        AddressGuard(allow_ports=[port])  # type: ignore[list-item]  # wrong types are the point
    assert repr(port) in str(refused.value)


def test_the_environment_says_what_is_allowed() -> None:
    guard = AddressGuard.from_environment(
        {"TICKLER_ALLOW_NETWORKS": " 10.0.0.0/8, ,fd00::/8,", "TICKLER_ALLOW_PORTS": "443, 8443"}
    )
    guard.check_address("10.0.0.1", 1)
    guard.check_address("fd00::1", 1)
    guard.check_address("8.8.8.8", 8443)
    for address, port in (("8.8.8.8", 80), ("127.0.0.1", 443)):
        with pytest.raises(AddressRefused):
            guard.check_address(address, port)


@pytest.mark.parametrize("environ", [{}, {"TICKLER_ALLOW_NETWORKS": "", "TICKLER_ALLOW_PORTS": " , "}])
def test_an_environment_that_says_nothing_allows_what_is_public(environ: dict[str, str]) -> None:
    guard = AddressGuard.from_environment(environ)
    guard.check_address("8.8.8.8", 443)
    with pytest.raises(AddressRefused):
        guard.check_address("127.0.0.1", 443)


@pytest.mark.parametrize(
    ("name", "value"),
    [("TICKLER_ALLOW_NETWORKS", "10.0.0.0"[:4]), ("TICKLER_ALLOW_PORTS", "https"), ("TICKLER_ALLOW_PORTS", "8O80"),
     ("TICKLER_ALLOW_PORTS", "99999"), ("TICKLER_ALLOW_PORTS", "-1"), ("TICKLER_ALLOW_PORTS", "８０")],
)  # fmt: skip
def test_an_environment_that_does_not_read_is_refused_by_its_value(name: str, value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        AddressGuard.from_environment({name: value})
    assert value in str(refused.value)


async def test_answers_that_are_not_allowed_are_left_out() -> None:
    resolver = GuardedResolver(GUARD, ScriptedResolver({"mixed.example": ["64:ff9b::808:808", "8.8.8.8", "10.0.0.1"]}))
    assert [answer["host"] for answer in await resolver.resolve("mixed.example", 443)] == ["8.8.8.8"]


async def test_a_name_that_leads_nowhere_allowed_is_refused_by_name_and_only_the_log_says_where_it_leads(
    caplog: pytest.LogCaptureFixture,
) -> None:
    resolver = GuardedResolver(GUARD, ScriptedResolver(NAMES))
    with pytest.raises(
        AddressRefused, match=r"private\.example resolves to a blocked address \(see the worker\'s log\).*allow_networks="
    ) as refused:
        await resolver.resolve("private.example", 443)
    assert "10.0" not in str(refused.value)
    assert "private.example resolves to a blocked address: 10.0.0.5 is private" in caplog.text


async def test_a_name_without_addresses_is_an_error_of_the_network() -> None:
    resolver = GuardedResolver(GUARD, ScriptedResolver({"empty.example": []}))
    with pytest.raises(OSError, match="the name has no address"):
        await resolver.resolve("empty.example", 443)


async def test_closing_closes_the_resolver_that_is_asked() -> None:
    asked = ScriptedResolver({})
    await GuardedResolver(GUARD, asked).close()
    assert asked.closed


def test_no_socket_is_made_to_an_address_that_is_refused() -> None:
    with pytest.raises(PermissionError, match=r"10\.0\.0\.1 is private"):
        GUARD.socket_to((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("10.0.0.1", 443)))
    GUARD.socket_to((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("8.8.8.8", 443))).close()


async def test_the_socket_is_checked_even_if_everything_before_it_failed(
    monkeypatch: pytest.MonkeyPatch, connections: Connections
) -> None:
    monkeypatch.setattr(GuardedResolver, "resolve", lambda self, *asked, **also: self._resolver.resolve(*asked, **also))
    (outcome,) = await deliver(GUARD, ScriptedResolver(NAMES), "http://metadata/")
    assert outcome.verdict == "give_up"
    assert "169.254.169.254" in (outcome.detail or "")
    assert connections == []


async def test_the_system_is_asked_for_names_by_default() -> None:
    async with Sink(answers(200)) as sink:
        url = sink.url.replace("127.0.0.1", "localhost")
        assert (await deliver(AddressGuard(["127.0.0.0/8"]), None, url))[0].verdict == "delivered"
        (refused,) = await deliver(AddressGuard(["10.0.0.0/8"]), None, url)
        assert refused.verdict == "give_up"
        assert sink.connections == 1


@pytest.fixture
def no_dns_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.deliver.targets.http.DNS_CACHE_S", 0)


ONLY_ONE = AddressGuard(["127.0.0.1/32"])


async def test_a_name_that_changes_its_mind_is_not_followed_to_an_address_that_is_refused(no_dns_cache: None) -> None:
    async with Sink(answers(200, connection="close")) as good, Sink(answers(200), "127.0.0.2", good.port) as bad:
        async with FickleDns(["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"], ["127.0.0.2"]) as dns:
            url = f"http://rebinding.example:{good.port}/"
            outcomes = await deliver(ONLY_ONE, DnsResolver(dns), url, times=4)
        assert [outcome.verdict for outcome in outcomes] == ["delivered", "give_up", "delivered", "give_up"]
        assert "rebinding.example resolves to a blocked address (see the worker's log)" in (outcomes[1].detail or "")
        assert (good.connections, bad.connections) == (2, 0)
        assert dns.asked == ["rebinding.example"] * 4  # once a connection: there is no second answer between check and connect


async def test_of_a_good_and_a_bad_address_only_the_good_one_is_connected_to(no_dns_cache: None) -> None:
    async with Sink(answers(200, connection="close")) as good, Sink(answers(200), "127.0.0.2", good.port) as bad:
        async with FickleDns(["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"]) as dns:
            outcomes = await deliver(ONLY_ONE, DnsResolver(dns), f"http://rebinding.example:{good.port}/", times=6)
        assert {outcome.verdict for outcome in outcomes} == {"delivered"}
        assert (good.connections, bad.connections) == (6, 0)


async def test_when_the_good_address_is_down_the_bad_one_is_no_way_around(no_dns_cache: None) -> None:
    async with Sink(answers(200), "127.0.0.2") as bad:
        async with FickleDns(["127.0.0.1", "127.0.0.2"]) as dns:
            (outcome,) = await deliver(ONLY_ONE, DnsResolver(dns), f"http://rebinding.example:{bad.port}/")
        assert outcome.verdict == "retry"
        assert bad.connections == 0


async def test_what_is_remembered_of_a_name_was_checked() -> None:
    async with Sink(answers(200, connection="close")) as good, Sink(answers(200), "127.0.0.2", good.port) as bad:
        async with FickleDns(["127.0.0.2", "127.0.0.1"], ["127.0.0.2"]) as dns:
            outcomes = await deliver(ONLY_ONE, DnsResolver(dns), f"http://rebinding.example:{good.port}/", times=5)
        assert {outcome.verdict for outcome in outcomes} == {"delivered"}
        assert len(dns.asked) == 1
        assert (good.connections, bad.connections) == (5, 0)


async def test_a_connection_that_is_kept_stays_where_it_was_checked(no_dns_cache: None) -> None:
    async with Sink(answers(200)) as good, Sink(answers(200), "127.0.0.2", good.port) as bad:
        async with FickleDns(["127.0.0.1"], ["127.0.0.2"]) as dns:
            outcomes = await deliver(ONLY_ONE, DnsResolver(dns), f"http://rebinding.example:{good.port}/", times=3)
        assert {outcome.verdict for outcome in outcomes} == {"delivered"}
        assert (good.connections, bad.connections, len(good.received)) == (1, 0, 3)
