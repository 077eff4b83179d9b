"""Tokens with an application's own scopes and attributes, and tokens that earlier versions stored."""

from __future__ import annotations

import hashlib
import json
from typing import Literal

import msgspec
import pytest

from tickler import InvalidInput, ManualClock, Tickler, connect
from tickler.access.bearer_tokens import REMEMBERED_MS
from tickler.access.tokens import Token
from tickler.records.kinds import web_kind
from tickler.web import BearerToken, BearerTokens

KIND = web_kind("prices", "token-pb")


class PriceToken(BearerToken, frozen=True, kw_only=True):
    """A token of stores whose ids begin with one of the prefixes."""

    scopes: tuple[Literal["read", "edit", "approve"], ...]
    stores: tuple[str, ...] = ()


def tokens_of(t: Tickler) -> BearerTokens[PriceToken]:
    return BearerTokens(t.store.records, t.clock, PriceToken, prefix="pb", record_kind=KIND)


async def test_a_token_comes_back_with_its_scopes_and_attributes(anywhere: Tickler, clock: ManualClock) -> None:
    tokens = tokens_of(anywhere)
    made, text = await tokens.create(PriceToken(scopes=("approve", "read"), stores=("12", "13"), name="till"))
    assert made == PriceToken(id=made.id, scopes=("read", "approve"), stores=("12", "13"), name="till", created_at=clock.now_ms())
    assert text.startswith(f"pb_{made.id}_")
    assert [await tokens_of(anywhere).check(text), await tokens.get(made.id), *(await tokens.list()).items] == [made] * 3
    kept = json.dumps([record.value for record in await anywhere.store.records.list(KIND, now_ms=clock.now_ms())])
    assert text.rpartition("_")[2] not in kept
    assert await tokens.revoke(made.id)
    assert not await tokens.revoke(made.id)
    assert (await tokens.check(text), await tokens.get(made.id), await tokens.are_any()) == (None, None, False)


class UserToken(BearerToken, frozen=True, kw_only=True):
    """A token of a user."""

    scopes: tuple[Literal["read"], ...]
    user: str


def of_users(t: Tickler) -> BearerTokens[UserToken]:
    return BearerTokens(t.store.records, t.clock, UserToken, prefix="u", record_kind=KIND, subject=lambda token: token.user)


async def test_the_tokens_of_one_subject_are_listed_a_page_at_a_time(anywhere: Tickler) -> None:
    tokens = of_users(anywhere)
    made = {
        user: [(await tokens.create(UserToken(scopes=("read",), user=user)))[0] for _ in range(5)] for user in ("u1", "u2", "ü")
    }
    for user, theirs in made.items():
        found: list[UserToken] = []
        after: str | None = None
        for size in (2, 2, 1):
            page = await tokens.list(user, limit=2, after=after)
            assert len(page.items) == size
            found, after = found + page.items, page.next
        assert ([token.id for token in found], after) == (sorted(token.id for token in theirs), None)
        assert {token.user for token in found} == {user}
        assert (await tokens.list(user, limit=5)).next is None
    assert (await tokens.list("u3")).items == []
    assert len((await tokens.list()).items) == 15
    everybody = [await tokens.list(limit=7)]
    while (after := everybody[-1].next) is not None:
        everybody.append(await tokens.list(limit=7, after=after))
    assert [len(page.items) for page in everybody] == [7, 7, 1]
    assert await tokens.revoke(made["u1"][0].id)
    assert len((await tokens.list("u1")).items) == 4


async def test_subjects_with_the_same_hash_keep_their_tokens_apart(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.access.bearer_tokens.SUBJECT_HASH_LENGTH", 1)
    tokens = of_users(t)
    for n in range(60):
        await tokens.create(UserToken(scopes=("read",), user=f"u{n}"))
    assert [[token.user for token in (await tokens.list(f"u{n}")).items] for n in range(60)] == [[f"u{n}"] for n in range(60)]


async def test_what_a_subject_lists_is_what_is_valid(t: Tickler, clock: ManualClock) -> None:
    tokens = of_users(t)
    await tokens.create(UserToken(scopes=("read",), user="u1"), expires_at=clock.now_ms() + 1_000)
    made, text = await tokens.create(UserToken(scopes=("read",), user="u1"))
    newer = {"id": made.id[:6] + "f" * 10, "scopes": ["fly"], "user": "u1", "hash": "00"}
    await t.store.records.put(KIND, made.id[:6] + "f" * 10, msgspec.json.encode(newer), now_ms=clock.now_ms())
    clock.advance(2)
    assert (await tokens.list("u1")).items == [made]
    assert await tokens.check(text) == made


async def test_a_list_that_cannot_be_made_is_refused(t: Tickler) -> None:
    for options, why in (
        ({"limit": 0}, "limit: 0 is not a page size"),
        ({"limit": 1_001}, "limit"),
        ({"limit": True}, "limit"),
        ({"after": "x"}, "after: 'x' is not a cursor"),
        ({"subject": ""}, "subject"),
        ({"subject": 7}, "subject: 7 is not a text"),
    ):
        with pytest.raises(InvalidInput, match=why):
            await of_users(t).list(**options)
    with pytest.raises(InvalidInput, match="pass subject= where you declare them"):
        await tokens_of(t).list("u1")
    with pytest.raises(InvalidInput, match="subject"):
        await of_users(t).create(UserToken(scopes=("read",), user=""))


async def test_a_token_of_one_application_is_none_of_another(t: Tickler) -> None:
    _, text = await tokens_of(t).create(PriceToken(scopes=("read",)))
    elsewhere = BearerTokens(t.store.records, t.clock, PriceToken, prefix="pb", record_kind=web_kind("other", "token-pb"))
    assert await elsewhere.check(text) is None
    assert await t.tokens.check(text.replace("pb_", "tk_")) is None
    assert not await t.tokens.exist(), "the service stays as it was"
    _, ours = await t.tokens.create(["read"])
    assert await tokens_of(t).check(ours.replace("tk_", "pb_")) is None


async def test_a_token_expires_and_is_revoked_elsewhere_soon(sqlite_url: str, clock: ManualClock) -> None:
    async with connect(sqlite_url, clock=clock) as t, connect(sqlite_url, clock=clock) as elsewhere:
        tokens = tokens_of(t)
        _, short = await tokens.create(PriceToken(scopes=("read",)), expires_at=clock.now_ms() + 1_000)
        made, text = await tokens.create(PriceToken(scopes=("read",)))
        assert await tokens.check(short) is not None
        clock.advance(1)
        assert await tokens.check(short) is None
        assert await tokens.check(text) is not None
        await tokens_of(elsewhere).revoke(made.id)
        clock.advance(REMEMBERED_MS / 1000)
        assert await tokens.check(text) is None


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (PriceToken(scopes=()), "use read, edit, approve"),
        (PriceToken(scopes=("operate",)), "use read, edit, approve"),  # type: ignore[arg-type]  # refused
        (PriceToken(scopes="read"), "use read, edit, approve"),  # type: ignore[arg-type]  # refused
        (PriceToken(scopes=("read",), stores=(1,)), "PriceToken declares"),  # type: ignore[arg-type]  # refused
        (PriceToken(scopes=("read",), stores=("\ud800",)), "PriceToken declares"),
        (PriceToken(scopes=("read",), name="\n"), "printable"),
        (PriceToken(scopes=("read",), name="x" * 101), "printable"),
    ],
    ids=str,
)
async def test_a_token_that_could_not_be_read_again_is_refused(t: Tickler, token: PriceToken, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        await tokens_of(t).create(token)
    assert not await tokens_of(t).are_any()


class Scopeless(BearerToken, frozen=True, kw_only=True):
    """Declares no scopes."""


class Hashed(BearerToken, frozen=True, kw_only=True):
    """Has a field that the store needs."""

    scopes: tuple[Literal["read"], ...]
    hash: str = ""


class HashedWhenStored(BearerToken, frozen=True, kw_only=True):
    """Writes a field under the name that the store needs."""

    scopes: tuple[Literal["read"], ...]
    digest: str = msgspec.field(default="", name="hash")


class Sealed(BearerToken, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Could not be read beside its hash: every token would be created, and then refused."""

    scopes: tuple[Literal["read"], ...]


class Listed(BearerToken, frozen=True, kw_only=True, array_like=True):
    """Has no place for its hash."""

    scopes: tuple[Literal["read"], ...]


@pytest.mark.parametrize("token_type", [BearerToken, Scopeless, Hashed, HashedWhenStored, Sealed, Listed])
async def test_a_type_whose_scopes_or_tokens_could_not_be_read_is_refused(t: Tickler, token_type: type[BearerToken]) -> None:
    with pytest.raises(InvalidInput, match=token_type.__name__):
        BearerTokens(t.store.records, t.clock, token_type, prefix="x", record_kind="k")


@pytest.mark.parametrize("prefix", ["", "A", "a_b", "a" * 17, "é", "1a"])
async def test_a_prefix_that_cannot_be_told_from_the_rest_is_refused(t: Tickler, prefix: str) -> None:
    with pytest.raises(InvalidInput, match="prefix"):
        BearerTokens(t.store.records, t.clock, PriceToken, prefix=prefix, record_kind="k")


async def test_a_token_of_the_service_that_an_earlier_version_stored_is_still_valid(anywhere: Tickler) -> None:
    id, secret = "0123456789abcdef", "ab" * 32
    stored = {
        "id": id,
        "scopes": ["read", "write"],
        "owner": "u1",
        "name": "the shop",
        "created_at": 1_700_000_000_000,
        "expires_at": None,
        "hash": hashlib.sha256(secret.encode()).hexdigest(),
    }
    await anywhere.store.records.put("token", id, msgspec.json.encode(stored), now_ms=anywhere.now_ms())
    old = Token(id=id, scopes=("read", "write"), owner="u1", name="the shop", created_at=1_700_000_000_000)
    assert await anywhere.tokens.check(f"tk_{id}_{secret}") == old
    assert await anywhere.tokens.list() == [old]


async def test_the_service_stores_tokens_as_earlier_versions_read_them(t: Tickler) -> None:
    made, _ = await t.tokens.create(["read"], owner="u1", name="x", expires_at=t.now_ms() + 1_000)
    record = await t.store.records.get("token", made.id, now_ms=t.now_ms())
    assert record is not None
    assert isinstance(record.value, dict)
    assert set(record.value) == {"id", "scopes", "owner", "name", "created_at", "expires_at", "hash"}
    assert (record.value["owner"], record.value["scopes"]) == ("u1", ["read"])
