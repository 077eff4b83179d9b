"""Encryption at rest: what is stored cannot be read, what is read back can be put again, and nothing is unsealed for others."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tickler.clock import ManualClock
from tickler.connect import store_for_url
from tickler.errors import InvalidInput, InvalidSchedule
from tickler.model.schedule import Schedule, StoredSchedule
from tickler.model.schedule_json import encode_body, schedule_from_json, schedule_to_json
from tickler.model.target import REDACTED, HttpTarget, PythonTarget
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store
from tickler.webhooks.encryption import MAX_REMEMBERED, Encryption
from tickler.webhooks.key_ring import new_key
from tickler.webhooks.signature import new_secret

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
URL = "https://example.org/hook"
TOKEN = "Bearer hunter2"
SECRET = new_secret()
KEY, OLD_KEY = new_key(), new_key()
SEALER = Encryption([KEY])
TARGET = HttpTarget(URL, headers={"Authorization": TOKEN, "x-team": "blue-hunter2"}, secret=SECRET)
SEALED = SEALER.encrypt_target(TARGET, "u1")


def shows_a_secret(*shown: object) -> bool:
    text = " ".join(str(each) for each in shown)
    return any(plain in text for plain in ("hunter2", SECRET, SECRET.removeprefix("whsec_"), KEY, OLD_KEY))


# Sealing and unsealing a target.


def test_a_target_is_unsealed_to_what_was_sealed() -> None:
    assert SEALER.decrypt_target(SEALED, "u1") == TARGET
    assert SEALED.headers == {"authorization": REDACTED, "x-team": REDACTED}
    assert SEALED.secret == REDACTED
    assert not SEALED.has_secrets


@pytest.mark.parametrize(
    "target",
    [
        HttpTarget(URL, headers={"authorization": TOKEN}),
        HttpTarget(URL, secret=SECRET),
        HttpTarget(URL, body="raw", headers={f"x-{number}": "v" * 100 for number in range(50)}, secret=SECRET),
        HttpTarget("https://bücher.example:8443/?x=ä", headers={"x": '"\\\t~'}),
    ],
    ids=str,
)
def test_headers_or_a_secret_or_both_survive(target: HttpTarget) -> None:
    sealed = SEALER.encrypt_target(target, "ü/日本")
    assert SEALER.decrypt_target(sealed, "ü/日本") == target
    assert SEALER.encrypt_target(sealed, "ü/日本") == sealed


@pytest.mark.parametrize("target", [HttpTarget(URL), HttpTarget(URL, body="raw"), HttpTarget(URL, headers={})], ids=str)
def test_a_target_without_anything_to_hide_stays_as_it_is_and_needs_no_key(target: HttpTarget) -> None:
    assert Encryption().encrypt_target(target, "u1") is target
    assert Encryption().decrypt_target(target, "u1") is target


def test_the_same_is_sealed_differently_each_time_but_kept_where_it_was_stored_already() -> None:
    assert SEALER.encrypt_target(TARGET, "u1") != SEALED
    assert SEALER.encrypt_target(TARGET, "u1", SEALED) == SEALED
    turned = HttpTarget(URL, headers=dict(reversed([*(TARGET.headers or {}).items()])), secret=SECRET)
    again = SEALER.encrypt_target(turned, "u1", SEALED)
    assert list(again.headers or {}) == list(SEALED.headers or {}), "another order is no change"
    assert again == SEALED


@pytest.mark.parametrize(
    ("target", "owner"),
    [
        (replace(TARGET, headers={"authorization": TOKEN}), "u1"),
        (replace(TARGET, headers={"authorization": "Bearer other", "x-team": "blue-hunter2"}), "u1"),
        (replace(TARGET, secret=new_secret()), "u1"),
        (replace(TARGET, secret=None), "u1"),
        (replace(TARGET, url="https://example.com/hook"), "u1"),
        (TARGET, "u2"),
    ],
    ids=["fewer headers", "another value", "another secret", "no secret", "another host", "another owner"],
)
def test_what_differs_from_the_stored_is_sealed_anew(target: HttpTarget, owner: str) -> None:
    sealed = SEALER.encrypt_target(target, owner, SEALED)
    assert sealed.sealed != SEALED.sealed
    assert SEALER.decrypt_target(sealed, owner) == target


def test_a_stored_text_that_no_key_opens_any_more_is_replaced() -> None:
    lost = Encryption([new_key()]).encrypt_target(TARGET, "u1")
    sealed = SEALER.encrypt_target(TARGET, "u1", lost)
    assert SEALER.decrypt_target(sealed, "u1") == TARGET


def test_a_bad_signing_secret_is_refused_when_it_is_sealed_and_not_at_each_delivery() -> None:
    with pytest.raises(InvalidSchedule, match=r"tickler\.new_secret\(\)") as refused:
        SEALER.encrypt_target(HttpTarget(URL, secret="hunter2"), "u1")
    assert refused.value.field == "target.secret"
    assert not shows_a_secret(refused.value)


# Bound to owner and origin.


@pytest.mark.parametrize(
    "url",
    ["https://example.org/other?path=1#x", "https://example.org", "HTTPS://EXAMPLE.ORG/hook", "https://example.org:443/hook"],
)
def test_another_path_on_the_same_host_gets_the_same_headers(url: str) -> None:
    moved = HttpTarget(url, sealed=SEALED.sealed)
    assert SEALER.decrypt_target(SEALER.encrypt_target(moved, "u1"), "u1") == replace(TARGET, url=url)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/hook",
        "http://example.org/hook",
        "https://example.org:8443/hook",
        "https://example.org.evil.example/hook",
        "https://www.example.org/hook",
        "https://example.org./hook",
        "https://evil.example/https://example.org/hook",
    ],
)
def test_headers_do_not_go_to_another_host_scheme_or_port(url: str) -> None:
    for moved in (replace(SEALED, url=url), HttpTarget(url, sealed=SEALED.sealed)):
        for use in (SEALER.encrypt_target, SEALER.decrypt_target):
            with pytest.raises(InvalidSchedule, match="another owner or host: pass the headers") as refused:
                use(moved, "u1")
            assert refused.value.field == "target.sealed"
            assert not shows_a_secret(refused.value)


@pytest.mark.parametrize(
    ("given_for", "asked_for"),
    [
        ("https://aς.example/", "https://aΣ.example/"),  # the second leads to aσ.example
        ("https://aΣ.example:8443/", "https://aς.example:8443/"),
        ("https://BÜCHER.example/", "https://bücher.example/"),
    ],
)
def test_names_that_only_look_the_same_in_lower_case_are_not_the_same_host(given_for: str, asked_for: str) -> None:
    sealed = SEALER.encrypt_target(HttpTarget(given_for, headers={"x": TOKEN}), "u1")
    assert SEALER.decrypt_target(replace(sealed, url=f"{given_for}other"), "u1").headers == {"x": TOKEN}
    for use in (SEALER.encrypt_target, SEALER.decrypt_target):
        with pytest.raises(InvalidSchedule, match="another owner or host"):
            use(replace(sealed, url=asked_for), "u1")


def test_the_port_of_a_scheme_may_be_written_or_not_beside_a_name_that_is_not_ascii() -> None:
    sealed = SEALER.encrypt_target(HttpTarget("https://bücher.example/", headers={"x": TOKEN}), "u1")
    for url in ("https://bücher.example:443/", "HTTPS://bücher.example"):
        assert SEALER.decrypt_target(replace(sealed, url=url), "u1").headers == {"x": TOKEN}
    for url in ("https://bücher.example:444/", "http://bücher.example/"):
        with pytest.raises(InvalidSchedule, match="another owner or host"):
            SEALER.decrypt_target(replace(sealed, url=url), "u1")


@pytest.mark.parametrize("owner", ["u2", "U1", "u1 ", "", "u1/digest"])
def test_headers_of_one_owner_are_not_unsealed_for_another(owner: str) -> None:
    for use in (SEALER.encrypt_target, SEALER.decrypt_target):
        with pytest.raises(InvalidSchedule, match="another owner or host: pass the headers"):
            use(SEALED, owner)


def test_what_was_unsealed_for_one_owner_a_moment_ago_is_still_refused_to_another() -> None:
    assert SEALER.decrypt_target(SEALED, "u1") == TARGET
    with pytest.raises(InvalidSchedule, match="another owner"):
        SEALER.decrypt_target(SEALED, "u2")
    with pytest.raises(InvalidSchedule, match="another owner or host"):
        SEALER.decrypt_target(replace(SEALED, url="https://evil.example/"), "u1")


# Put again, as read.


def test_what_is_put_again_with_plain_values_beside_it_is_refused_and_not_stored_in_plain() -> None:
    for beside in ({"headers": {"authorization": REDACTED, "x-new": "hunter2"}}, {"secret": SECRET}):
        with pytest.raises(InvalidSchedule, match="in addition to `sealed`") as refused:
            SEALER.encrypt_target(HttpTarget(URL, sealed=SEALED.sealed, **beside), "u1")
        assert not shows_a_secret(refused.value)
        with pytest.raises(InvalidSchedule, match="in addition to `sealed`"):
            Encryption().encrypt_target(HttpTarget(URL, sealed=SEALED.sealed, **beside), "u1")


def test_a_header_cannot_be_dropped_or_added_by_its_name_alone() -> None:
    for headers in ({"authorization": REDACTED}, {**(SEALED.headers or {}), "x-new": REDACTED}):
        with pytest.raises(InvalidSchedule, match="not the ones in `sealed`"):
            SEALER.encrypt_target(replace(SEALED, headers=headers), "u1")


def test_the_sealed_text_alone_stands_for_all_that_is_in_it() -> None:
    assert SEALER.encrypt_target(HttpTarget(URL, sealed=SEALED.sealed), "u1") == SEALED


@pytest.mark.parametrize(
    "text",
    [
        "gAAAAA",
        "x" * 200,
        str(SEALED.sealed)[:-1],
        str(SEALED.sealed)[:40] + ("A" if str(SEALED.sealed)[40] != "A" else "B") + str(SEALED.sealed)[41:],
        SEALER.encrypt_text("u1", "target"),
        Fernet(KEY).encrypt(b'["target","u1","https://example.org:443",{"x":1},null]').decode(),
        Fernet(KEY).encrypt(b"\xff").decode(),
        Fernet(new_key()).encrypt(b"{}").decode(),
    ],
    ids=["cut short", "no token", "a character less", "a character changed", "a text", "not its shape", "no JSON", "another key"],
)
def test_a_text_that_was_tampered_with_is_refused_when_it_is_put_and_when_it_is_sent(text: str) -> None:
    for use in (SEALER.encrypt_target, SEALER.decrypt_target):
        with pytest.raises(InvalidSchedule, match="no key in TICKLER_KEY decrypts it") as refused:
            use(HttpTarget(URL, sealed=text), "u1")
        assert refused.value.field == "target.sealed"
        assert text not in str(refused.value)


@pytest.mark.parametrize("text", ["", "a b", "ä", "\ud800", "gAAAA\n", "x" * 65_537], ids=lambda text: repr(text[:9]))
def test_a_text_that_can_be_none_is_refused_with_and_without_a_key(text: str) -> None:
    for encryption in (SEALER, Encryption()):
        with pytest.raises(InvalidSchedule, match=r"^target\.sealed: "):
            encryption.encrypt_target(HttpTarget(URL, sealed=text), "u1")
        with pytest.raises(InvalidSchedule, match=r"^target\.sealed: "):
            encryption.decrypt_target(HttpTarget(URL, sealed=text), "u1")


@given(text=st.text(st.characters(), max_size=100))
def test_whatever_the_text_nothing_worse_than_a_refusal_comes_of_it(text: str) -> None:
    for use in (SEALER.encrypt_target, SEALER.decrypt_target):
        with pytest.raises(InvalidSchedule):
            use(HttpTarget(URL, sealed=text), "u1")
    with pytest.raises(InvalidInput):
        SEALER.decrypt_text(text, "x")


# Keys.


def test_without_a_key_nothing_is_sealed_and_the_error_says_how_to_make_one() -> None:
    for target, field in ((TARGET, "target.headers"), (HttpTarget(URL, secret=SECRET), "target.secret")):
        with pytest.raises(InvalidSchedule, match=r"set TICKLER_KEY to what .*tickler\.new_key\(\)") as refused:
            Encryption().encrypt_target(target, "u1")
        assert refused.value.field == field
        assert not shows_a_secret(refused.value)
    with pytest.raises(InvalidInput, match=r"set TICKLER_KEY to what .*tickler\.new_key\(\)"):
        Encryption().encrypt_text(SECRET, "secret")


def test_without_a_key_what_is_sealed_stays_so_and_may_be_put_again() -> None:
    assert Encryption().encrypt_target(SEALED, "u1") is SEALED
    with pytest.raises(InvalidSchedule, match="set TICKLER_KEY to the one that it was encrypted with"):
        Encryption().decrypt_target(SEALED, "u1")
    with pytest.raises(InvalidInput, match="set TICKLER_KEY to the one that it was encrypted with"):
        Encryption().decrypt_text(SEALER.encrypt_text("x", "y"), "y")


def test_the_first_key_seals_and_all_unseal() -> None:
    before = Encryption.from_environment({"TICKLER_KEY": OLD_KEY})
    both = Encryption.from_environment({"TICKLER_KEY": f" {KEY}, {OLD_KEY} ,"})
    after = Encryption.from_environment({"TICKLER_KEY": KEY})
    old = before.encrypt_target(TARGET, "u1")
    assert both.decrypt_target(old, "u1") == TARGET
    new = both.encrypt_target(TARGET, "u1")
    assert after.decrypt_target(new, "u1") == TARGET
    for encryption, target in ((before, new), (after, old)):
        with pytest.raises(InvalidSchedule, match="add the key that it was encrypted with"):
            encryption.decrypt_target(target, "u1")


def test_what_an_old_key_sealed_is_sealed_anew_when_it_is_put_again_and_then_stays() -> None:
    """Otherwise a key could never be dropped."""
    both, after = Encryption([KEY, OLD_KEY]), Encryption([KEY])
    old = Encryption([OLD_KEY]).encrypt_target(TARGET, "u1")
    for again in (TARGET, old, HttpTarget(URL, sealed=old.sealed)):
        new = both.encrypt_target(again, "u1", old)
        assert after.decrypt_target(new, "u1") == TARGET
        assert both.encrypt_target(again, "u1", new) == new, "a put of the same changes nothing"
        assert after.encrypt_target(new, "u1", new) == new


@pytest.mark.parametrize("environ", [{}, {"TICKLER_KEY": ""}, {"TICKLER_KEY": " , "}], ids=str)
def test_an_empty_setting_is_no_key(environ: dict[str, str]) -> None:
    with pytest.raises(InvalidSchedule, match="TICKLER_KEY"):
        Encryption.from_environment(environ).encrypt_target(TARGET, "u1")


@pytest.mark.parametrize(
    "text",
    ["hunter2", f"{KEY[:-4]}", f"{KEY}=", f"{KEY} {KEY}", "hunter2é", f"{KEY},hunter2", new_secret()],
    ids=["a word", "cut short", "too long", "two without a comma", "not ASCII", "one of two", "a signing secret"],
)
def test_a_malformed_key_is_refused_and_never_repeated(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"TICKLER_KEY: key \d of \d is not a key: ") as refused:
        Encryption.from_environment({"TICKLER_KEY": text})
    assert not shows_a_secret(refused.value, repr(refused.value.__context__))
    assert text not in str(refused.value)


def test_a_new_key_is_one_that_fernet_takes() -> None:
    assert len({new_key() for _ in range(100)}) == 100
    assert Fernet(new_key()).encrypt(b"x")


def test_where_the_package_is_missing_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    encryption = Encryption([KEY])
    with pytest.raises(InvalidInput, match=r"pip install 'ticklerfile\[http\]'"):
        encryption.encrypt_target(TARGET, "u1")
    assert encryption.encrypt_target(HttpTarget(URL), "u1") == HttpTarget(URL)


# Texts.


def test_a_text_is_unsealed_for_the_purpose_it_was_sealed_for_only() -> None:
    sealed = SEALER.encrypt_text(SECRET, "secret of u1")
    assert SEALER.decrypt_text(sealed, "secret of u1") == SECRET
    for purpose in ("secret of u2", "", "target"):
        with pytest.raises(InvalidInput, match="no key in TICKLER_KEY decrypts it") as refused:
            SEALER.decrypt_text(sealed, purpose)
        assert not shows_a_secret(refused.value)


def test_a_targets_text_is_no_secrets_and_the_other_way_round() -> None:
    with pytest.raises(InvalidInput):
        SEALER.decrypt_text(str(SEALED.sealed), "u1")
    with pytest.raises(InvalidSchedule):
        SEALER.decrypt_target(HttpTarget(URL, sealed=SEALER.encrypt_text(TOKEN, "u1")), "u1")


# Nothing is shown, and not all is kept.


def test_nothing_that_can_be_printed_shows_a_secret() -> None:
    schedule = Schedule(owner="u1", key="digest", when="@hourly", target=TARGET)
    assert not shows_a_secret(repr(SEALER), SEALER, repr(TARGET), TARGET, repr(SEALED), repr(schedule), schedule)
    assert not shows_a_secret(schedule_to_json(replace(schedule, target=SEALED)), encode_body(replace(schedule, target=SEALED)))


def test_what_is_unsealed_for_each_delivery_is_remembered_and_that_is_bounded() -> None:
    encryption = Encryption([KEY])
    first = encryption.decrypt_target(SEALED, "u1")
    assert encryption.decrypt_target(replace(SEALED), "u1") is first
    for number in range(MAX_REMEMBERED):
        encryption.decrypt_target(replace(SEALED, url=f"{URL}/{number}"), "u1")
    assert encryption._remembered.cache_info().currsize == MAX_REMEMBERED
    assert encryption.decrypt_target(SEALED, "u1") == first


# In a store.


def schedule(key: str = "digest", **fields: Any) -> Schedule:
    return Schedule(**{"owner": "u1", "key": key, "when": "0 * * * *", "target": TARGET, **fields})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def store(any_url: str) -> AsyncIterator[Store]:
    store = store_for_url(any_url)
    await store.open(create=True)
    yield store
    await store.close()


@pytest.fixture
def schedules(store: Store, clock: ManualClock) -> Schedules:
    """On each of the stores."""
    return Schedules(store.schedules, clock, encryption=SEALER)


@pytest.fixture
async def in_memory(clock: ManualClock) -> AsyncIterator[Schedules]:
    """Where the store does not matter."""
    store = store_for_url("memory://")
    await store.open(create=True)
    yield Schedules(store.schedules, clock, encryption=SEALER)
    await store.close()


def unsealed(stored: StoredSchedule | None) -> HttpTarget:
    assert stored is not None
    assert isinstance(stored.target, HttpTarget)
    return SEALER.decrypt_target(stored.target, stored.owner)


async def test_put_get_and_put_again_changes_nothing(schedules: Schedules, clock: ManualClock) -> None:
    put = await schedules.put(schedule())
    assert isinstance(put.target, HttpTarget)
    assert put.target.headers == {"authorization": REDACTED, "x-team": REDACTED}
    assert unsealed(put) == TARGET
    clock.advance(1)
    assert await schedules.get("u1", "digest") == put
    assert await schedules.put(put) == put, "as it was read"
    assert await schedules.put(put.declared()) == put
    assert await schedules.put(schedule()) == put, "as it was declared"
    assert await schedules.put_many([schedule()]) == 0
    assert await schedules.put(schedule_from_json(schedule_to_json(put))) == put, "as it travels"
    assert (await schedules.update(schedule(), version=1)).version == 1
    assert (await schedules.declare("u1", [schedule()])).kept == ["digest"]


async def test_every_way_to_write_seals(schedules: Schedules) -> None:
    await schedules.put(schedule("put"))
    await schedules.put_many([schedule("many1"), schedule("many2")])
    await schedules.update(schedule("update"), version=0)
    await schedules.declare("u2", [schedule("declare", owner="u2")])
    await schedules.pause("u1", "put")
    await schedules.resume("u1", "put")
    page = await schedules.list()
    assert len(page.items) == 5
    for stored in page.items:
        assert unsealed(stored) == TARGET
        assert not shows_a_secret(encode_body(stored), repr(stored), schedule_to_json(stored))


async def test_a_changed_header_is_a_change_and_keeps_the_next_fire(in_memory: Schedules) -> None:
    before = await in_memory.put(schedule())
    after = await in_memory.put(schedule(target=replace(TARGET, headers={"authorization": "Bearer new"})))
    assert (after.version, after.next_fire_at) == (2, before.next_fire_at)
    assert unsealed(after).headers == {"authorization": "Bearer new"}
    plain = await in_memory.put(schedule(target=URL))
    assert plain.target == HttpTarget(URL)
    assert (await in_memory.put(schedule(target=PythonTarget("digest")))).version == 4


async def test_a_copied_text_is_refused_for_another_owner_or_host(in_memory: Schedules) -> None:
    """Whoever reads a stored schedule must not get its headers by having them sent to themselves."""
    victim = await in_memory.put(schedule())
    assert isinstance(victim.target, HttpTarget)
    stolen = HttpTarget("https://evil.example/", sealed=victim.target.sealed)
    for thief in (schedule(owner="u2", target=victim.target), schedule(target=stolen), schedule(owner="u2", target=stolen)):
        with pytest.raises(InvalidSchedule, match="another owner or host: pass the headers"):
            await in_memory.put(thief)
    assert (await in_memory.list(owner="u2")).items == []
    assert (await in_memory.get("u1", "digest")) == victim
    moved = await in_memory.put(schedule(target=replace(victim.target, url="https://example.org/elsewhere")))
    assert unsealed(moved).headers == TARGET.headers


async def test_a_text_that_no_key_opens_is_refused_and_the_position_is_told(in_memory: Schedules) -> None:
    bad = schedule("bad", target=HttpTarget(URL, sealed="gAAAAAhello"))
    with pytest.raises(InvalidSchedule, match="no key in TICKLER_KEY decrypts it") as refused:
        await in_memory.put_many([schedule("good"), bad])
    assert (refused.value.field, refused.value.position) == ("target.sealed", 1)
    assert (await in_memory.list()).items == []


async def test_without_a_key_headers_are_refused_and_nothing_is_stored(clock: ManualClock) -> None:
    store = store_for_url("memory://")
    await store.open(create=True)
    keyless = Schedules(store.schedules, clock)
    for put in (keyless.put(schedule()), keyless.put_many([schedule()]), keyless.declare("u1", [schedule()])):
        with pytest.raises(InvalidSchedule, match=r"tickler\.new_key\(\)"):
            await put
    assert (await keyless.list()).items == []
    stored = await Schedules(store.schedules, clock, encryption=SEALER).put(schedule())
    assert await keyless.put(stored) == stored, "what is sealed may be put again"
    assert (await keyless.put(replace(stored, payload=1))).version == 2
    await store.close()


async def test_the_file_of_a_sqlite_store_has_nothing_readable_in_it(
    sqlite_url: str, tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = store_for_url(sqlite_url)
    await store.open(create=True)
    schedules = Schedules(store.schedules, clock, encryption=SEALER)
    await schedules.put(schedule())
    await schedules.put(
        schedule(payload="can be seen", target=replace(TARGET, headers={"authorization": "Bearer another hunter2"}))
    )
    await schedules.put_many([schedule(str(number)) for number in range(50)])
    while_open = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    await store.close()
    closed = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for raw in (while_open, closed):
        assert b"can be seen" in raw
        for plain in (b"hunter2", SECRET.encode(), SECRET.removeprefix("whsec_").encode(), KEY.encode()):
            assert plain not in raw
    assert not shows_a_secret(caplog.text)
