"""Names are looked up by the system, each on a thread of its own: a slow nameserver delays no other lookup."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tickler.deliver.dns_resolver import SystemResolver

TIMEOUT_S = 20.0
TARPIT = "tarpit.example"


class SlowNameserver:
    """Answers for names in its domain when the test says so; the system answers for all others."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked = threading.Semaphore(0)
        self._getaddrinfo = socket.getaddrinfo

    def getaddrinfo(self, host: str, *rest: Any, **more: Any) -> Any:
        if not host.endswith(TARPIT):
            return self._getaddrinfo(host, *rest, **more)
        self.asked.release()
        self.answers.wait(TIMEOUT_S)
        return self._getaddrinfo("127.0.0.1", *rest, **more)


@pytest.fixture
def nameserver(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowNameserver]:
    slow = SlowNameserver()
    monkeypatch.setattr(socket, "getaddrinfo", slow.getaddrinfo)
    yield slow
    slow.answers.set()


async def addresses(resolver: SystemResolver, host: str) -> list[str]:
    async with asyncio.timeout(TIMEOUT_S):
        return [answer["host"] for answer in await resolver.resolve(host, 443, socket.AF_INET)]


async def test_a_name_leads_to_its_addresses() -> None:
    (found,) = await SystemResolver().resolve("localhost", 8443, socket.AF_INET)
    assert (found["hostname"], found["host"], found["port"], found["family"]) == ("localhost", "127.0.0.1", 8443, socket.AF_INET)


async def test_a_name_that_is_not_known_is_an_error_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*asked: object, **more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(socket.gaierror, match="not known"):
        await SystemResolver().resolve("unknown.example")


async def test_link_local_addresses_keep_their_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = socket.if_nametoindex("lo")
    found = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", 443, 0, scope))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *asked, **more: found)
    assert await addresses(SystemResolver(), "near.example") == ["fe80::1%lo"]


async def test_names_that_nobody_answers_for_keep_no_other_waiting(nameserver: SlowNameserver) -> None:
    """A hundred, and the event loop has one thread for everything, which is taken."""
    loop = asyncio.get_running_loop()
    taken = threading.Event()
    with ThreadPoolExecutor(max_workers=1) as pool:
        loop.set_default_executor(pool)
        busy = loop.run_in_executor(None, taken.wait, TIMEOUT_S)
        resolver = SystemResolver()
        slow = [asyncio.ensure_future(resolver.resolve(f"{number}.{TARPIT}", 443, socket.AF_INET)) for number in range(100)]
        try:
            assert await addresses(resolver, "localhost") == ["127.0.0.1"]
            assert not any(each.done() for each in slow)
        finally:
            taken.set()
            nameserver.answers.set()
            await asyncio.gather(busy, *slow)


async def test_a_lookup_has_a_time_of_its_own_and_a_sentence_of_its_own(nameserver: SlowNameserver) -> None:
    with pytest.raises(TimeoutError) as late:
        await SystemResolver(timeout_s=0.05).resolve(TARPIT, 443)
    assert late.value.strerror == "no address for tarpit.example within 0.05 s"
    assert late.value.errno  # aiohttp takes one without for its own timeout


async def test_a_lookup_counts_until_the_system_lets_go_of_it(nameserver: SlowNameserver) -> None:
    resolver = SystemResolver(timeout_s=0.05, max_lookups=2)
    for number in range(2):
        with pytest.raises(TimeoutError):
            await resolver.resolve(f"{number}.{TARPIT}", 443)
        assert nameserver.asked.acquire(timeout=TIMEOUT_S)
    with pytest.raises(TimeoutError, match=r"no address for localhost within 0\.05 s"):
        await resolver.resolve("localhost", 443)
    nameserver.answers.set()
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            try:
                assert await addresses(resolver, "localhost") == ["127.0.0.1"]
                break
            except TimeoutError:
                continue


async def test_where_no_thread_can_be_started_the_place_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = SystemResolver(max_lookups=1)
    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", start)
        for _ in range(3):
            with pytest.raises(OSError, match="cannot start a thread"):
                await resolver.resolve("localhost", 443)
    assert await addresses(resolver, "localhost") == ["127.0.0.1"]


async def test_whoever_is_cancelled_does_not_wait_for_the_system(nameserver: SlowNameserver) -> None:
    asking = asyncio.ensure_future(SystemResolver().resolve(TARPIT, 443))
    await asyncio.to_thread(nameserver.asked.acquire)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, TIMEOUT_S)
