"""DynamoDB's error responses, and which of them are worth a retry."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tickler.aws import error_codes
from tickler.aws.error_codes import plain_code
from tickler.dynamo.codec import Item
from tickler.errors import TicklerError

THROTTLED = error_codes.THROTTLED | {"ProvisionedThroughputExceeded", "TransactionConflict", "TransactionInProgress"}
TRANSIENT = frozenset(
    {
        "InternalServer",
        "InternalServerError",
        "InternalFailure",
        "ServiceUnavailable",
        "RequestTimeout",
        "ReplicatedWriteConflict",  # another region of a global table writes the same item
    }
)

# Of DynamoDB Streams, where a retry of the same request cannot help, but another one can:
EXPIRED_ITERATOR = "ExpiredIterator"  # it is older than 15 minutes
TRIMMED = "TrimmedDataAccess"  # the position is older than what is kept
NOT_FOUND = "ResourceNotFound"  # of a table, a stream, or a shard


class RequestRefused(TicklerError):
    """An error that a retry cannot fix. `code` is DynamoDB's, without namespace and suffix."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"DynamoDB refused a request: {message} ({code})")
        self.code = code
        self.message = message


class ConditionFailed(RequestRefused):
    """The condition of a write did not hold. `item` is the stored item, if it exists and was requested."""

    def __init__(self, message: str, item: Item | None) -> None:
        super().__init__("ConditionalCheckFailed", message)
        self.item = item


class TransactionCancelled(RequestRefused):
    """A transaction was cancelled. `reasons` has a code (or None) and the stored item for each of its writes."""

    def __init__(self, message: str, reasons: Sequence[tuple[str | None, Item | None]]) -> None:
        super().__init__("TransactionCanceled", message)
        self.reasons = reasons


def is_retryable(code: str) -> bool:
    return code in THROTTLED or code in TRANSIENT


def read_failure(status: int, body: bytes) -> RequestRefused:
    """Turn a response with a status other than 200 into an error."""
    try:
        answer = msgspec.json.decode(body, type=dict[str, object])
    except msgspec.MsgspecError:
        answer = {}
    code = plain_code(str(answer.get("__type") or answer.get("code") or f"HTTP {status}"))
    message = str(answer.get("message") or answer.get("Message") or body[:200].decode(errors="replace"))
    if status >= 500 and not is_retryable(code):
        code = "InternalServer"
    if code == "ConditionalCheckFailed":
        return ConditionFailed(message, _item(answer.get("Item")))
    if code == "TransactionCanceled":
        reasons = answer.get("CancellationReasons")
        return TransactionCancelled(message, [_reason(each) for each in reasons] if isinstance(reasons, list) else [])
    return RequestRefused(code, message)


def _reason(reason: dict[str, object]) -> tuple[str | None, Item | None]:
    code = str(reason.get("Code") or "None")
    return (None if code == "None" else plain_code(code)), _item(reason.get("Item"))


def _item(item: object) -> Item | None:
    return item if isinstance(item, dict) and item else None
