"""Amazon SQS: a fire becomes a message."""

from __future__ import annotations

import hashlib
from typing import ClassVar

import msgspec

from tickler.deliver.targets.aws_http import Answer, AwsDeliverer, Request
from tickler.model.delivery import Delivery, Outcome
from tickler.model.target import SqsTarget
from tickler.webhooks.envelope import envelope

MAX_MESSAGE_BYTES = 1_048_576  # of the service; a queue may allow less, and then refuses for itself

_HEADERS = {"content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS.SendMessage"}
_encode = msgspec.json.Encoder().encode


class SqsDeliverer(AwsDeliverer[SqsTarget]):
    """Sends the envelope as the body of a message, and the fire's id as its attribute `webhook-id`.

    In a FIFO queue a schedule is a message group, so that its fires keep their order, and the fire's id is the deduplication
    id: SQS drops what is sent again within five minutes. Otherwise, and later, the receiver dedupes by `webhook-id`.
    """

    service: ClassVar[str] = "sqs"
    action: ClassVar[str] = "sqs:SendMessage"
    when_late: ClassVar[str] = "check the endpoint and the network, or make the schedule's timeout longer"

    def _request(self, delivery: Delivery, arn: str, endpoint: str) -> Request | Outcome:
        message = _message(delivery)
        if len(message) > MAX_MESSAGE_BYTES:
            return Outcome(
                verdict="give_up",
                detail=f"the message has {len(message)} bytes and SQS takes {MAX_MESSAGE_BYTES}: send a reference",
            )
        account, name = arn.split(":")[4:6]
        sent: dict[str, object] = {
            "QueueUrl": f"{endpoint}/{account}/{name}",
            "MessageBody": message.decode(),
            "MessageAttributes": {"webhook-id": {"DataType": "String", "StringValue": delivery.id}},
        }
        if name.endswith(".fifo"):
            sent["MessageGroupId"] = _group(delivery)
            sent["MessageDeduplicationId"] = delivery.id
        return Request("/", _HEADERS, _encode(sent))

    def _read(self, answer: Answer) -> Outcome:
        if answer.field("MessageId"):
            return Outcome(verdict="delivered", status=answer.status, answer=answer.text)
        return Outcome(
            verdict="retry",
            status=answer.status,
            detail="the answer names no message, so it is not SQS's: check the endpoint",
            answer=answer.text,
        )


def _message(delivery: Delivery) -> bytes:
    """The envelope, without the two characters that JSON has and SQS does not: as JSON's escapes they are the same."""
    return envelope(delivery).replace("\ufffe".encode(), rb"\ufffe").replace("\uffff".encode(), rb"\uffff")


def _group(delivery: Delivery) -> str:
    """A name for the schedule in 128 characters, of a kind that SQS takes."""
    return hashlib.blake2b(f"{delivery.owner}\0{delivery.key}".encode(), digest_size=16).hexdigest()
