"""Merges a patch into a payload. Long payloads are merged on a thread, between two reads of the store."""

from __future__ import annotations

from collections.abc import Mapping

from tickler.database.pacing import LONG_BYTES
from tickler.model.payload import RawPayload, held_payload
from tickler.model.schedule import StoredSchedule
from tickler.model.schedule_json import MAX_PAYLOAD_BYTES, encoded_payload
from tickler.schedules.merge_patch import merge_patch

MAX_PATCH_BYTES = 4 * MAX_PAYLOAD_BYTES  # removing a name takes more bytes than having it


def encoded_patch(patch: Mapping[str, object]) -> dict[str, object]:
    """Return the patch with its payload encoded, so that its length is known. `InvalidSchedule` if it is not plain JSON."""
    fields = dict(patch)
    if "payload" in fields:
        max_bytes = MAX_PATCH_BYTES if isinstance(fields["payload"], Mapping) else MAX_PAYLOAD_BYTES
        fields["payload"] = encoded_payload(fields["payload"], max_bytes)
    return fields


class PayloadMerge:
    """The payload that results from applying an `encoded_patch` to a schedule."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self._is_named = "payload" in fields
        self._patch = encoded_payload(fields.get("payload"))
        self._stored: RawPayload | None = None
        self._is_merged = False
        self.payload: RawPayload | None = None

    def is_ready(self, current: StoredSchedule) -> bool:
        """Tell whether `payload` is merged for `current`. If not, `merge` takes long: run it on a thread and ask again."""
        stored = encoded_payload(held_payload(current))
        if not (self._is_merged and _same(stored, self._stored)):
            self._stored, self._is_merged = stored, False
            if self._is_object_patch and _length(stored) + _length(self._patch) > LONG_BYTES:
                return False
            self.merge()
        return True

    def merge(self) -> None:
        """Merge the patch into the payload that `is_ready` last saw."""
        if not self._is_named:
            self.payload = self._stored
        elif self._is_object_patch:
            before = self._stored.read() if self._stored is not None and _is_object(self._stored) else None
            assert self._patch is not None
            self.payload = encoded_payload(merge_patch(before, self._patch.read()))
        else:
            self.payload = self._patch
        self._is_merged = True

    @property
    def _is_object_patch(self) -> bool:
        return self._patch is not None and _is_object(self._patch)


def _is_object(payload: RawPayload) -> bool:
    return bytes(memoryview(payload.json)[:1]) == b"{"


def _length(payload: RawPayload | None) -> int:
    return 0 if payload is None else len(payload.json)


def _same(one: RawPayload | None, other: RawPayload | None) -> bool:
    return (None if one is None else bytes(one.json)) == (None if other is None else bytes(other.json))
