"""Bearer tokens of any application: its own scopes and attributes, and a prefix that tells its tokens from others.

The store has only a hash of each; its text is shown once. `tokens.py` are the tokens of the service.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Generic, TypeVar, get_args, get_type_hints

import msgspec
from msgspec.structs import replace

from tickler.clock import Clock, to_ms
from tickler.errors import InvalidInput
from tickler.model.record import Record, value_of
from tickler.records.contract import RecordStore

MAX_LISTED = 1_000
MAX_TOKEN_NAME_LENGTH = 100
SUBJECT_HASH_LENGTH = 6  # at the beginning of an id; the other ten digits are random
REMEMBERED_MS = 2_500  # how long a token revoked by another process may still be accepted; event streams check every two seconds
MAX_REMEMBERED = 10_000

_PREFIX = re.compile(r"[a-z][a-z0-9]{0,15}")
_ID = re.compile(r"[0-9a-f]{16}")


class BearerToken(msgspec.Struct, frozen=True, kw_only=True):
    """What a token allows. Subclass it: narrow `scopes` to your literals, and add attributes such as its user.

    `create` sets `id`, `created_at` and `expires_at`; `name` is for people who look at a list.
    """

    id: str = ""
    scopes: tuple[str, ...] = ()
    name: str = ""
    created_at: int = 0
    expires_at: int | None = None


T = TypeVar("T", bound=BearerToken)


class TokenPage(msgspec.Struct, Generic[T], frozen=True):
    """A page of tokens, and the cursor of the next page; None at the end."""

    items: list[T]
    next: str | None


class BearerTokens(Generic[T]):
    """Creates, lists, checks and revokes tokens of one type. Checked tokens are cached for a few seconds.

    Their text is `{prefix}_{id}_{secret}`; `record_kind` is where the store keeps them. `subject` says whose token one is. Ids
    begin with a hash of that, so that the tokens of one subject are next to each other.
    """

    def __init__(
        self,
        records: RecordStore,
        clock: Clock,
        token_type: type[T],
        *,
        prefix: str,
        record_kind: str,
        subject: Callable[[T], str] | None = None,
    ) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise InvalidInput(f"prefix: {prefix!r} is invalid: use up to 16 lower-case letters and digits, such as 'sp'")
        self.scopes = scopes_of(token_type)
        self._records = records
        self._clock = clock
        self._type = token_type
        self._prefix = prefix
        self._kind = record_kind
        self._subject = subject
        self._text = re.compile(rf"{prefix}_([0-9a-f]{{16}})_([0-9a-f]{{64}})")
        self._known: dict[str, tuple[int, bytes, T]] = {}  # by id: the end of caching, the hash, the token

    async def create(self, token: T, *, expires_at: int | datetime | None = None) -> tuple[T, str]:
        """Store a token with a new id. Return it with its text, which cannot be shown again."""
        now_ms = self._clock.now_ms()
        token = replace(
            token,
            id=secrets.token_hex(8),
            scopes=_checked_scopes(token.scopes, self.scopes),
            name=_checked_name(token.name),
            created_at=now_ms,
            expires_at=_checked_expiry(expires_at, now_ms),
        )
        if self._subject is not None:
            token = replace(token, id=_subject_hash(self._subject(token)) + token.id[SUBJECT_HASH_LENGTH:])
        secret = secrets.token_hex(32)
        value = msgspec.json.encode({**self._checked_attributes(token), "hash": _hash(secret).hex()})
        await self._records.put(self._kind, token.id, value, now_ms=now_ms, expires_at=token.expires_at, expected=0)
        return token, f"{self._prefix}_{token.id}_{secret}"

    async def list(self, subject: str | None = None, *, limit: int = 100, after: str | None = None) -> TokenPage[T]:
        """Return a page of the valid tokens of a subject, or of all, by id. `after` is a page's `next`."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LISTED:
            raise InvalidInput(f"limit: {limit!r} is not a page size: pass a whole number from 1 to {MAX_LISTED}")
        if after is not None and not _ID.fullmatch(after):
            raise InvalidInput(f"after: {ascii(after)[:40]} is not a cursor: pass the `next` of an earlier page of the same list")
        start = "" if subject is None else self._start_of(subject)
        found = [each for each in await self._page(limit + 1, after or start) if each.name.startswith(start)]
        tokens = [read[1] for read in map(self._read, found[:limit]) if read is not None]
        if subject is not None and self._subject is not None:
            tokens = [token for token in tokens if self._subject(token) == subject]  # another may have the same hash
        return TokenPage(tokens, found[limit - 1].name if len(found) > limit else None)

    async def are_any(self) -> bool:
        """Return whether there is a token, also one that only a newer version can read."""
        return bool(await self._page(1))

    async def revoke(self, id: str) -> bool:
        """Delete a token, and return whether it existed. Other processes may accept it for five more seconds."""
        self._known.pop(id, None)
        return bool(_ID.fullmatch(id)) and await self._records.delete(self._kind, id)

    async def check(self, text: str) -> T | None:
        """Return the token with that text, if it is valid. A wrong secret takes as long as the right one."""
        parts = self._text.fullmatch(text)
        if parts is None:
            return None
        found = await self._find(parts[1])
        right, token = found if found is not None else (bytes(32), None)
        return token if hmac.compare_digest(right, _hash(parts[2])) else None

    async def get(self, id: str) -> T | None:
        """Return a token by its id, for callers that have proved possession before."""
        found = await self._find(id) if _ID.fullmatch(id) else None
        return None if found is None else found[1]

    async def _find(self, id: str) -> tuple[bytes, T] | None:
        now_ms = self._clock.now_ms()
        known = self._known.get(id)
        if known is not None and now_ms < known[0]:
            return known[1:] if known[2].expires_at is None or now_ms < known[2].expires_at else None
        record = await self._records.get(self._kind, id, now_ms=now_ms)
        read = None if record is None else self._read(record)
        if read is None:
            self._known.pop(id, None)
            return None
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[id] = (now_ms + REMEMBERED_MS, *read)
        return read

    async def _page(self, limit: int, after: str = "") -> Sequence[Record]:
        return await self._records.list(self._kind, now_ms=self._clock.now_ms(), after=after, limit=limit)

    def _start_of(self, subject: str) -> str:
        if self._subject is None:
            raise InvalidInput("subject: these tokens have none: pass subject= where you declare them, and create them with it")
        return _subject_hash(subject)

    def _checked_attributes(self, token: T) -> dict[str, object]:
        """Return the token as it is stored, unless it could not be read again."""
        try:
            stored: dict[str, object] = msgspec.to_builtins(token)
            is_same = msgspec.convert(msgspec.json.decode(msgspec.json.encode(stored)), self._type) == token
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise InvalidInput(f"token: {error}: pass values of the types that {self._type.__name__} declares") from None
        if not is_same:
            raise InvalidInput(f"token: {self._type.__name__} does not survive JSON: use plain text, numbers, tuples and lists")
        return stored

    def _read(self, record: Record) -> tuple[bytes, T] | None:
        """Return the hash and the token. None if a newer version wrote it: its permissions are unknown here."""
        token, stored = value_of(record, self._type), value_of(record, _Stored)
        return None if token is None or stored is None else (bytes.fromhex(stored.hash), token)


class _Stored(msgspec.Struct, frozen=True):
    """What the store keeps beside the fields of a token."""

    hash: str


def scopes_of(token_type: type[BearerToken]) -> tuple[str, ...]:
    """Return the scopes that the type declares as `scopes: tuple[Literal["read", "write"], ...]`."""
    scopes: tuple[str, ...] = get_args(get_args(get_type_hints(token_type)["scopes"])[0])
    if not scopes or not all(isinstance(scope, str) for scope in scopes):
        remedy = 'declare `scopes: tuple[Literal["read", "write"], ...]` with your own'
        raise InvalidInput(f"{token_type.__name__}: has no scopes of its own: {remedy}")
    if "hash" in (*token_type.__struct_fields__, *token_type.__struct_encode_fields__):
        raise InvalidInput(f"{token_type.__name__}: has a field 'hash', which is kept beside the token: rename it")
    config = token_type.__struct_config__
    if config.array_like or config.forbid_unknown_fields:
        remedy = "declare it without array_like and forbid_unknown_fields"
        raise InvalidInput(f"{token_type.__name__}: could not be read again beside its hash: {remedy}")
    return scopes


def _hash(secret: str) -> bytes:
    """Hash a secret. A fast hash is enough for 256 random bits."""
    return hashlib.sha256(secret.encode()).digest()


def _subject_hash(subject: object) -> str:
    if not isinstance(subject, str) or not subject:
        raise InvalidInput(f"subject: {ascii(subject)[:40]} is not a text of 1 or more characters: pass the id of a user")
    return hashlib.sha256(subject.encode(errors="surrogatepass")).hexdigest()[:SUBJECT_HASH_LENGTH]


def _checked_scopes(scopes: Collection[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes in the order of their declaration."""
    unknown = [scope for scope in scopes if scope not in known]
    if unknown or not scopes or isinstance(scopes, str):
        raise InvalidInput(f"scopes: {list(scopes)!r} is not a list of scopes: use {', '.join(known)}")
    return tuple(scope for scope in known if scope in scopes)


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or len(name) > MAX_TOKEN_NAME_LENGTH or not name.isprintable():
        raise InvalidInput(f"name: {str(name)[:40]!r} is invalid: use up to {MAX_TOKEN_NAME_LENGTH} printable characters")
    return name


def _checked_expiry(expires_at: int | datetime | None, now_ms: int) -> int | None:
    if expires_at is None:
        return None
    until = to_ms(expires_at, "expires_at")
    if until <= now_ms:
        raise InvalidInput("expires_at: has passed: pass an instant in the future")
    return until
