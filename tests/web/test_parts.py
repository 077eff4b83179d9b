"""Addresses, rates, host names, headers, paths and problems, each by itself."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from tickler import InvalidInput
from tickler.web import local_path
from tickler.web.addresses import Proxies, address_of, proxies_of
from tickler.web.host_check import LOCAL_NAMES, HostCheck
from tickler.web.problems import Refused
from tickler.web.rate_limit import MAX_CALLERS, RateLimit
from tickler.web.redirects import requested_path
from tickler.web.security_headers import STRICT_POLICY, security_headers
from tickler.web.settings import WebSettings, is_below

PROXIES = proxies_of(["10.0.0.0/8", "::1"])


@pytest.mark.parametrize(
    ("client", "forwarded", "address"),
    [
        ("203.0.113.7", [], "203.0.113.7"),
        ("203.0.113.7", ["198.51.100.1"], "203.0.113.7"),  # not a proxy: it may say what it likes
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.9, 198.51.100.1"], "198.51.100.1"),  # the caller wrote the first
        ("10.0.0.1", ["192.0.2.9", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.9, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", [" , ,"], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("::1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("::1", ["[2001:db8::5]:4711"], "2001:db8::/64"),
        ("::1", ["2001:db8::5"], "2001:db8::/64"),
        ("::1", ["unknown"], "unknown"),
        ("::1", ["x" * 5_000], "x" * 64),
        (None, ["198.51.100.1"], ""),
    ],
)
def test_an_address_is_the_last_that_no_trusted_proxy_has(client: str | None, forwarded: list[str], address: str) -> None:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope = {"client": None if client is None else (client, 1), "headers": headers}
    assert address_of(scope, PROXIES) == address
    if client is not None:
        assert address_of(scope) == address_of({**scope, "headers": []}), "without proxies nobody is believed"


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ([], "unix"),
        ([" ,"], "unix"),
        (["192.0.2.9, 198.51.100.1"], "198.51.100.1"),
        (["198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        (["198.51.100.1, unix:"], "198.51.100.1"),  # nginx behind nginx, on a socket too
        (["unix:, 198.51.100.1"], "198.51.100.1"),
    ],
)
def test_behind_a_unix_socket_an_address_is_believed_if_the_proxies_include_it(forwarded: list[str], address: str) -> None:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope = {"client": None, "server": ("/run/notes.sock", None), "headers": headers}
    assert address_of(scope, proxies_of(["unix", "10.0.0.0/8"])) == address
    assert address_of(scope, PROXIES) == address_of(scope) == "unix"
    for server in (("127.0.0.1", 80), None):
        assert address_of({**scope, "server": server}, Proxies(unix=True)) == "", "perhaps no Unix socket: nobody is believed"


def test_a_rate_at_its_bound_of_memory_forgets_who_was_idle_longest() -> None:
    rates = RateLimit(1, lambda: 0.0, burst=1)
    for number in range(MAX_CALLERS):
        assert rates.take(f"caller {number}") == 0
    assert rates.take("caller 0") > 0
    for number in range(MAX_CALLERS // 2):
        assert rates.take(f"stranger {number}") == 0
    assert len(rates._buckets) == MAX_CALLERS
    assert rates.take("caller 0") > 0, "it has just been refused, and is remembered"
    assert rates.take("caller 1") == 0, "it was idle longest"


def test_a_rate_is_counted_in_any_thread() -> None:
    """Frameworks run handlers that are not async in threads."""
    rates = RateLimit(0.001, burst=50)
    with ThreadPoolExecutor(8) as threads:
        waits = list(threads.map(rates.take, ["a"] * 100))
    assert waits.count(0) == 50


def test_what_a_proxy_sends_for_an_address_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(1_000):
            headers = [(b"x-forwarded-for", b"%d" % number + b"x" * 30_000)]
            address_of({"client": ("10.0.0.1", 1), "headers": headers}, PROXIES)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_rate_says_when_to_come_back() -> None:
    rates = RateLimit(0.1, lambda: 0.0, burst=1)
    rates.check("a", "slow down")
    with pytest.raises(Refused, match="slow down") as refused:
        rates.check("a", "slow down")
    assert (refused.value.status, refused.value.headers) == (429, {"retry-after": "11"})


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "", "127.0.0.2", "localhost:80:80", "127.0.0.1.evil.example", "[::1].x", "*"],
)
def test_a_foreign_host_name_is_refused(host: str) -> None:
    with pytest.raises(Refused) as refused:
        HostCheck(LOCAL_NAMES).check(host)
    assert refused.value.status == 421


def test_own_host_names_are_accepted_at_any_port_in_any_case() -> None:
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"):
        HostCheck(LOCAL_NAMES).check(host)
    HostCheck(("Example.org",)).check("EXAMPLE.org:443")
    HostCheck(None).check("anything")


@pytest.mark.parametrize("names", [(), [], "example.org"])
def test_no_list_of_names_is_no_check_and_refused(names: object) -> None:
    with pytest.raises(InvalidInput, match="hosts"):
        HostCheck(names)  # type: ignore[arg-type]  # refused


def test_the_default_policy_allows_nothing_inline_and_nothing_foreign() -> None:
    headers = dict(security_headers())
    assert headers[b"content-security-policy"] == STRICT_POLICY.encode()
    assert "unsafe" not in STRICT_POLICY
    assert "default-src 'none'" in STRICT_POLICY
    assert b"strict-transport-security" not in headers
    assert dict(security_headers(hsts_s=5))[b"strict-transport-security"] == b"max-age=5"


@pytest.mark.parametrize(
    ("path", "prefixes", "below"),
    [
        ("/hooks", ("/hooks",), True),
        ("/hooks/github", ("/hooks",), True),
        ("/hooks/github", ("/hooks/",), True),
        ("/hooks", ("/hooks/",), True),
        ("/hooks-settings", ("/hooks",), False),
        ("/Hooks", ("/hooks",), False),
        ("/x/hooks", ("/hooks",), False),
        ("//hooks", ("/hooks",), False),
    ],
)
def test_a_prefix_covers_whole_segments(path: str, prefixes: tuple[str, ...], below: bool) -> None:
    assert is_below(path, prefixes) is below


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"foreign": ("hooks",)}, "not a path"),
        ({"foreign": ("/",)}, "name the paths of webhooks"),
        ({"foreign": ("",)}, "not a path"),
        ({"probes": ("/",)}, "of health checks in probes"),
        ({"bodies": {"upload": None}}, "not a path"),
        ({"proxies": ("nowhere",)}, "proxies"),
        ({"proxies": ("unix:/run/notes.sock",)}, "or 'unix'"),
        ({"rate": 0}, "rate"),
        ({"max_body": -1}, "max_body"),
        ({"body_s": 0}, "body_s"),
    ],
)
def test_settings_that_would_protect_nothing_are_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        WebSettings(**settings)  # type: ignore[arg-type]  # refused


@pytest.mark.parametrize(
    ("asked_for", "goes_to"),
    [
        ("/notes?x=1&y=%20", "/notes?x=1&y=%20"),
        ("https://evil.example/", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/%09/evil.example"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nset-cookie: x=y", "/a%0D%0Aset-cookie%3A%20x%3Dy"),
        ("", "/"),
        (None, "/"),
    ],
)
def test_a_path_to_go_back_to_is_on_this_site(asked_for: str | None, goes_to: str) -> None:
    assert local_path(asked_for) == goes_to


def test_only_what_was_looked_at_is_gone_back_to() -> None:
    scope = {"method": "GET", "path": "/a b/é", "raw_path": b"/a%20b/%C3%A9?x", "query_string": b"a=1&notice=put&b=2"}
    assert requested_path(scope) == "/a%20b/%C3%A9?a=1&notice=put&b=2"
    assert requested_path(scope, without="notice") == "/a%20b/%C3%A9?a=1&b=2"
    assert requested_path({**scope, "raw_path": None, "query_string": b""}) == "/a%20b/%C3%A9"
    assert requested_path({**scope, "method": "POST"}) is None
