"""Signing secrets: which one a delivery is signed with, how they are rotated, and that nobody can read them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from tickler.clock import ManualClock
from tickler.connect import store_for_url
from tickler.errors import InvalidInput, InvalidSchedule, InvalidSignature, StoreUnavailable, VersionConflict
from tickler.model.delivery import Delivery
from tickler.model.fire import fire_id
from tickler.model.record import Record
from tickler.model.target import HttpTarget
from tickler.records.contract import RecordStore
from tickler.records.records import Records
from tickler.stores.store import Store
from tickler.webhooks.encryption import Encryption
from tickler.webhooks.envelope import envelope
from tickler.webhooks.key_ring import new_key
from tickler.webhooks.signature import new_secret, sign
from tickler.webhooks.signing_secrets import MAX_REMEMBERED, MAX_SECRETS, SecretCache, SigningSecrets
from tickler.webhooks.verify import verify

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
DAY_S = 86_400
SEALER = Encryption([new_key()])
DEFAULT, OLD_DEFAULT, OWN, OTHER = (new_secret() for _ in range(4))
TARGET = HttpTarget("https://example.org/hook")


class CountedRecords:
    """The records of a store, counting what is read of them; fails while it is told to."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self.gets = 0
        self.lists = 0
        self.down = False

    async def get(self, kind: str, name: str, *, now_ms: int) -> Record | None:
        self.gets += 1
        self._check()
        return await self._records.get(kind, name, now_ms=now_ms)

    async def list(self, kind: str, *, now_ms: int, after: str = "", limit: int = 100) -> list[Record]:
        self.lists += 1
        self._check()
        return await self._records.list(kind, now_ms=now_ms, after=after, limit=limit)

    async def put(
        self,
        kind: str,
        name: str,
        value: bytes,
        *,
        now_ms: int,
        expires_at: int | None = None,
        expected: int | None = None,
        using: object = None,
    ) -> int:
        return await self._records.put(kind, name, value, now_ms=now_ms, expires_at=expires_at, expected=expected, using=using)

    async def delete(self, kind: str, name: str, *, using: object = None) -> bool:
        return await self._records.delete(kind, name, using=using)

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        return await self._records.prune(now_ms, limit)

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable("the store is down: try again")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    store = store_for_url("memory://")
    await store.open(create=True)
    yield store
    await store.close()


@pytest.fixture
def records(store: Store) -> CountedRecords:
    return CountedRecords(store.records)


@pytest.fixture
def secrets(records: CountedRecords, clock: ManualClock) -> SigningSecrets:
    return SigningSecrets(records, SEALER, clock)


@pytest.fixture
def cache(records: CountedRecords, clock: ManualClock) -> SecretCache:
    return SecretCache(records, SEALER, clock, {"TICKLER_SIGNING_SECRET": DEFAULT})


def delivery(owner: str = "u1") -> Delivery:
    return Delivery(
        id=fire_id(owner, "digest", NOW_MS),
        owner=owner,
        key="digest",
        nominal_at=NOW_MS,
        attempt=1,
        payload=None,
        target=TARGET,
        timeout_s=30,
        started_at=NOW_MS,
    )


# Which one.


async def test_the_targets_own_secret_wins_over_the_owners_and_that_over_the_default(
    cache: SecretCache, secrets: SigningSecrets, clock: ManualClock
) -> None:
    assert await cache.secrets_of(delivery(), TARGET) == (DEFAULT,)
    await secrets.put("u1", OWN)
    clock.advance(60)
    assert await cache.secrets_of(delivery(), TARGET) == (OWN,)
    assert await cache.secrets_of(delivery("u2"), TARGET) == (DEFAULT,)
    assert await cache.secrets_of(delivery(), HttpTarget(TARGET.url, secret=OTHER)) == (OTHER,)


async def test_a_targets_sealed_secret_is_used_once_it_is_unsealed(cache: SecretCache) -> None:
    stored = SEALER.encrypt_target(HttpTarget(TARGET.url, secret=OTHER), "u1")
    assert await cache.secrets_of(delivery(), SEALER.decrypt_target(stored, "u1")) == (OTHER,)
    with pytest.raises(InvalidInput, match=r"^secret: "):
        sign(await cache.secrets_of(delivery(), stored), "fire_1", 1, b"")


async def test_the_default_may_be_two_while_it_is_rotated(records: CountedRecords, clock: ManualClock) -> None:
    cache = SecretCache(records, SEALER, clock, {"TICKLER_SIGNING_SECRET": f" {DEFAULT} , {OLD_DEFAULT},"})
    assert await cache.of("u1") == (DEFAULT, OLD_DEFAULT)


@pytest.mark.parametrize(
    "text", ["hunter2", f"{DEFAULT},hunter2", f"{DEFAULT} {OTHER}", f"{DEFAULT},{OLD_DEFAULT},{OTHER}"], ids=range(4)
)
async def test_a_default_that_is_none_is_refused_at_once_and_not_repeated(
    records: CountedRecords, clock: ManualClock, text: str
) -> None:
    with pytest.raises(InvalidInput, match=r"^TICKLER_SIGNING_SECRET: ") as refused:
        SecretCache(records, SEALER, clock, {"TICKLER_SIGNING_SECRET": text})
    assert "hunter2" not in str(refused.value)
    assert DEFAULT not in str(refused.value)


@pytest.mark.parametrize("environ", [{}, {"TICKLER_SIGNING_SECRET": " "}], ids=str)
async def test_without_a_default_one_is_made_up_for_this_process_with_one_warning(
    records: CountedRecords, clock: ManualClock, caplog: pytest.LogCaptureFixture, environ: dict[str, str]
) -> None:
    cache = SecretCache(records, SEALER, clock, environ)
    assert caplog.records == [], "no warning before it is needed"
    (made_up,) = await cache.of("u1")
    assert sign([made_up], "fire_1", 1, b"").startswith("v1,")
    for _ in range(3):
        clock.advance(600)
        assert await cache.of("u2") == (made_up,)
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert "receivers cannot verify; set TICKLER_SIGNING_SECRET" in warning.getMessage()
    assert made_up not in caplog.text
    assert await SecretCache(records, SEALER, clock, environ).of("u1") != (made_up,)


# Rotating.


async def test_while_rotating_a_receiver_with_either_secret_verifies(
    cache: SecretCache, secrets: SigningSecrets, clock: ManualClock
) -> None:
    await secrets.put("u1", OWN)
    new = await secrets.rotate("u1")

    async def header() -> str:
        return sign(await cache.of("u1"), delivery().id, clock.now_ms() // 1000, envelope(delivery()))

    async def verified(secret: str) -> bool:
        headers = {
            "Webhook-Id": delivery().id,
            "Webhook-Timestamp": str(clock.now_ms() // 1000),
            "Webhook-Signature": await header(),
        }
        try:
            return verify(envelope(delivery()), headers, secret, clock=clock).owner == "u1"
        except InvalidSignature:
            return False

    assert (await cache.of("u1"))[0] == new, "the newest comes first"
    assert await verified(OWN)
    assert await verified(new)
    clock.advance(DAY_S - 1)
    assert await verified(OWN)
    clock.advance(1)
    assert not await verified(OWN), "a day is over, without anything being written or read"
    assert await verified(new)


async def test_the_first_rotation_keeps_the_default_as_the_old_one(
    cache: SecretCache, secrets: SigningSecrets, clock: ManualClock
) -> None:
    new = await secrets.rotate("u1", overlap=timedelta(hours=1))
    assert await cache.of("u1") == (new, DEFAULT)
    clock.advance(3600)
    assert await cache.of("u1") == (new,)


async def test_the_first_rotation_without_a_default_signs_with_the_new_one_alone(
    records: CountedRecords, secrets: SigningSecrets, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    new = await secrets.rotate("u1")
    assert await SecretCache(records, SEALER, clock, {}).of("u1") == (new,)
    assert caplog.records == []


async def test_without_an_overlap_the_old_ones_are_gone_at_once(cache: SecretCache, secrets: SigningSecrets) -> None:
    await secrets.put("u1", OWN)
    await secrets.rotate("u1", overlap=600)
    new = await secrets.rotate("u1", overlap=0)
    assert await cache.of("u1") == (new,)


async def test_rotating_again_and_again_keeps_those_in_their_overlap_but_not_without_end(
    cache: SecretCache, secrets: SigningSecrets, clock: ManualClock
) -> None:
    made = [await secrets.rotate("u1", overlap=timedelta(days=9)) for _ in range(MAX_SECRETS + 3)]
    assert await cache.of("u1") == tuple(reversed(made[-MAX_SECRETS:]))
    clock.advance(timedelta(days=9))
    last = await secrets.rotate("u1", overlap=60)
    assert await cache.of("u1") == (last, made[-1]), "the newest before counts from now, the others are over"


async def test_an_older_secret_does_not_live_longer_for_another_rotation(
    cache: SecretCache, secrets: SigningSecrets, clock: ManualClock
) -> None:
    await secrets.put("u1", OWN)
    first = await secrets.rotate("u1", overlap=120)
    second = await secrets.rotate("u1", overlap=timedelta(days=9))
    clock.advance(120)
    assert await cache.of("u1") == (second, first)


async def test_a_put_replaces_all_and_a_delete_leads_back_to_the_default(
    cache: SecretCache, secrets: SigningSecrets, clock: ManualClock
) -> None:
    await secrets.rotate("u1")
    await secrets.put("u1", OWN)
    assert await cache.of("u1") == (OWN,)
    assert await secrets.delete("u1") is True
    assert await secrets.delete("u1") is False
    clock.advance(60)
    assert await cache.of("u1") == (DEFAULT,)


async def test_of_two_rotations_at_the_same_moment_one_is_told(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = CountedRecords(store.records), SigningSecrets(store.records, SEALER, clock)
    await quick.put("u1", OWN)
    get = slow.get

    async def get_and_be_overtaken(kind: str, name: str, *, now_ms: int) -> Record | None:
        found = await get(kind, name, now_ms=now_ms)
        await quick.rotate("u1")
        return found

    monkeypatch.setattr(slow, "get", get_and_be_overtaken)
    with pytest.raises(VersionConflict):
        await SigningSecrets(slow, SEALER, clock).rotate("u1")


@pytest.mark.parametrize("overlap", [-1, timedelta(days=367), float("nan"), float("inf"), "1h", None, True], ids=repr)
async def test_an_overlap_is_a_duration(secrets: SigningSecrets, overlap: object) -> None:
    with pytest.raises(InvalidInput, match=r"^overlap: "):
        await secrets.rotate("u1", overlap=overlap)  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize("secret", ["hunter2", "", None, 5, b"x"], ids=repr)
async def test_a_secret_that_is_none_is_refused_and_not_repeated(
    secrets: SigningSecrets, records: CountedRecords, secret: object
) -> None:
    with pytest.raises(InvalidInput, match=r"^secret: ") as refused:
        await secrets.put("u1", secret)  # type: ignore[arg-type]  # wrong types are the point
    assert "hunter2" not in str(refused.value)
    assert await records.list("secret", now_ms=NOW_MS) == []


@pytest.mark.parametrize("owner", ["", None, "a\nb", "x" * 513], ids=lambda owner: repr(owner)[:9])
async def test_an_owner_is_a_name(secrets: SigningSecrets, owner: str) -> None:
    for call in (secrets.put(owner, OWN), secrets.rotate(owner), secrets.delete(owner)):
        with pytest.raises(InvalidSchedule, match=r"^owner: "):
            await call


# What it costs.


async def test_while_no_owner_has_a_secret_there_is_one_read_a_minute(
    cache: SecretCache, records: CountedRecords, clock: ManualClock
) -> None:
    for _ in range(3):
        for number in range(1_000):
            assert await cache.of(f"u{number}") == (DEFAULT,)
        clock.advance(60)
    assert (records.lists, records.gets) == (3, 0)


async def test_an_owners_secrets_or_that_there_are_none_are_read_once_a_minute(
    cache: SecretCache, secrets: SigningSecrets, records: CountedRecords, clock: ManualClock
) -> None:
    await secrets.put("u1", OWN)
    for _ in range(100):
        assert await cache.of("u1") == (OWN,)
        assert await cache.of("u2") == (DEFAULT,)
    assert (records.lists, records.gets) == (1, 2)
    await secrets.put("u1", OTHER)
    clock.advance(59)
    assert await cache.of("u1") == (OWN,)
    clock.advance(1)
    assert await cache.of("u1") == (OTHER,)


async def test_a_clock_that_is_set_back_does_not_keep_what_was_read(
    cache: SecretCache, secrets: SigningSecrets, clock: ManualClock
) -> None:
    await secrets.put("u1", OWN)
    assert await cache.of("u1") == (OWN,)
    await secrets.put("u1", OTHER)
    clock.advance(-3600)
    assert await cache.of("u1") == (OTHER,)


async def test_only_so_many_owners_are_remembered(cache: SecretCache, secrets: SigningSecrets) -> None:
    await secrets.put("u1", OWN)
    for number in range(MAX_REMEMBERED + 10):
        await cache.of(f"u{number}")
    assert len(cache._owners) == MAX_REMEMBERED
    assert await cache.of("u1") == (OWN,)


async def test_while_the_store_is_down_deliveries_are_signed_with_what_is_known(
    cache: SecretCache, secrets: SigningSecrets, records: CountedRecords, clock: ManualClock
) -> None:
    await secrets.put("u1", OWN)
    assert await cache.of("u1") == (OWN,)
    records.down = True
    for _ in range(3):
        clock.advance(60)
        assert await cache.of("u1") == (OWN,)
    with pytest.raises(StoreUnavailable):
        await cache.of("never seen")
    records.down = False
    await secrets.put("u1", OTHER)
    clock.advance(60)
    assert await cache.of("u1") == (OTHER,)


async def test_a_worker_that_knows_nothing_yet_does_not_guess(
    cache: SecretCache, records: CountedRecords, secrets: SigningSecrets
) -> None:
    await secrets.put("u1", OWN)
    records.down = True
    with pytest.raises(StoreUnavailable):
        await cache.of("u1")
    records.down = False
    assert await cache.of("u1") == (OWN,)


# Sealed.


async def test_without_a_key_an_owner_gets_no_secret(records: CountedRecords, clock: ManualClock) -> None:
    keyless = SigningSecrets(records, Encryption(), clock)
    for call in (keyless.put("u1", OWN), keyless.rotate("u1")):
        with pytest.raises(InvalidInput, match=r"signing secret of u1: .*TICKLER_KEY") as refused:
            await call
        assert OWN not in str(refused.value)
    assert await records.list("secret", now_ms=NOW_MS) == []


async def test_a_worker_without_the_key_fails_rather_than_sign_with_another_secret(
    records: CountedRecords, secrets: SigningSecrets, clock: ManualClock
) -> None:
    await secrets.put("u1", OWN)
    for encryption, remedy in (
        (Encryption(), "set TICKLER_KEY"),
        (Encryption([new_key()]), "add the key that it was encrypted with"),
    ):
        cache = SecretCache(records, encryption, clock, {"TICKLER_SIGNING_SECRET": DEFAULT})
        with pytest.raises(InvalidInput, match=remedy):
            await cache.of("u1")
        assert await cache.of("u2") == (DEFAULT,)


async def test_a_record_that_was_copied_to_another_owner_is_not_unsealed(
    cache: SecretCache, secrets: SigningSecrets, store: Store, clock: ManualClock
) -> None:
    await secrets.put("u1", OWN)
    record = await store.records.get("secret", "u1", now_ms=NOW_MS)
    assert record is not None
    assert isinstance(record.value, list)
    await store.records.put("secret", "u2", b'[{"sealed": "%s"}]' % record.value[0]["sealed"].encode(), now_ms=NOW_MS)
    with pytest.raises(InvalidInput, match="signing secret of u2"):
        await cache.of("u2")


async def test_a_record_of_another_shape_is_refused_by_name(cache: SecretCache, secrets: SigningSecrets, store: Store) -> None:
    await store.records.put("secret", "u1", b'{"newer": true}', now_ms=NOW_MS)
    with pytest.raises(InvalidInput, match=r"signing secret of u1: .*upgrade"):
        await cache.of("u1")
    with pytest.raises(InvalidInput, match="upgrade"):
        await secrets.rotate("u1")
    await secrets.put("u1", OWN)
    assert await cache.of("u1") == (OWN,)


async def test_callers_cannot_write_such_records_themselves(records: CountedRecords, clock: ManualClock) -> None:
    with pytest.raises(InvalidInput, match="is reserved by Tickler"):
        await Records(records, clock).put("secret", "u1", [])
    with pytest.raises(InvalidInput, match="is reserved by Tickler"):
        await Records(records, clock).delete("secret", "u1")


async def test_secrets_are_kept_by_every_store(any_url: str, clock: ManualClock) -> None:
    store = store_for_url(any_url)
    await store.open(create=True)
    try:
        secrets = SigningSecrets(store.records, SEALER, clock)
        await secrets.put("ü/1", OWN)
        new = await secrets.rotate("ü/1")
        cache = SecretCache(store.records, SEALER, clock, {"TICKLER_SIGNING_SECRET": DEFAULT})
        assert await cache.of("ü/1") == (new, OWN)
        assert await secrets.delete("ü/1")
    finally:
        await store.close()


async def test_nothing_that_is_stored_logged_or_printed_shows_a_secret(
    sqlite_url: str, tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = store_for_url(sqlite_url)
    await store.open(create=True)
    secrets = SigningSecrets(store.records, SEALER, clock)
    await secrets.put("u1", OWN)
    new = await secrets.rotate("u1")
    cache = SecretCache(store.records, SEALER, clock, {"TICKLER_SIGNING_SECRET": DEFAULT})
    assert await cache.of("u1") == (new, OWN)
    listed = await Records(store.records, clock).list("secret")
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    await store.close()
    raw += b"".join(path.read_bytes() for path in tmp_path.iterdir())
    shown = f"{caplog.text}{secrets!r}{cache!r}{listed!r}"
    assert b"gAAAA" in raw
    for secret in (OWN, new, DEFAULT):
        for plain in (secret, secret.removeprefix("whsec_")):
            assert plain not in shown
            assert plain.encode() not in raw
