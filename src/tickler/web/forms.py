"""Forms that only our own pages can send: each carries a token of the session that it was made for."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl

from tickler.clock import Clock
from tickler.records.contract import RecordStore
from tickler.web.problems import Refused
from tickler.web.signing_key import SigningKey

FIELD = "form_token"
MAX_FIELDS = 100

_PURPOSE = "form"


class FormFields(dict[str, str]):
    """The fields of a form by name. Of a repeated name this is the last value; `all` has every one."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def all(self, name: str) -> list[str]:
        """Return the values of a name in their order, such as those of checkboxes."""
        return [value for each, value in self._pairs if each == name]


class Forms:
    """Makes the tokens of forms, and reads forms that carry the right one."""

    def __init__(
        self, records: RecordStore, clock: Clock, *, record_kind: str, otherwise: str = "send application/x-www-form-urlencoded"
    ) -> None:
        self._key = SigningKey(records, clock, record_kind)
        self._otherwise = otherwise

    async def token(self, client_id: str) -> str:
        """Return the token for the forms of a client, to be put into a hidden field `form_token`."""
        return await self._key.sign(_PURPOSE, client_id)

    async def is_token(self, text: str, client_id: str) -> bool:
        """Check a token that a script sent, in a header for instance."""
        return await self._key.is_signature(text, _PURPOSE, client_id)

    async def read(self, content_type: str, body: bytes, client_id: str) -> FormFields:
        """Return the fields of a form. Its token proves that one of our pages sent it, and not another site."""
        if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
            raise Refused(415, f"this address takes a form of the page: {self._otherwise}")
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
        except ValueError:
            raise Refused(400, "the form is malformed: open the page again") from None
        tokens = [value for name, value in pairs if name == FIELD]
        if len(tokens) != 1 or not await self.is_token(tokens[0], client_id):
            raise Refused(403, "this form is too old, or the page did not send it: open the page again")
        return FormFields([(name, value) for name, value in pairs if name != FIELD])
