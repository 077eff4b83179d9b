"""Delivers to Amazon SQS: a fire becomes a message."""

from __future__ import annotations

import hashlib
from typing import ClassVar

import msgspec

from tickler.deliver.targets.aws_http import Answer, AwsDeliverer, Request
from tickler.model.delivery import Delivery, Outcome
from tickler.model.target import SqsTarget
from tickler.webhooks.envelope import envelope

MAX_MESSAGE_BYTES = 1_048_576  # of the service; a queue that allows less refuses by itself

_HEADERS = {"content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS.SendMessage"}
_encode = msgspec.json.Encoder().encode


class SqsDeliverer(AwsDeliverer[SqsTarget]):
    """Sends the envelope as the body of a message, and the fire's id as its attribute `webhook-id`.

    In a FIFO queue each schedule is a message group, which keeps its fires in order, and the fire's id deduplicates: SQS drops
    repeats within five minutes. After that, and in other queues, the receiver dedupes by `webhook-id`.
    """

    service: ClassVar[str] = "sqs"
    action: ClassVar[str] = "sqs:SendMessage"
    when_late: ClassVar[str] = "check the endpoint and the network, or make the schedule's timeout longer"

    def _request(self, delivery: Delivery, arn: str, endpoint: str) -> Request | Outcome:
        message = _message(delivery)
        if len(message) > MAX_MESSAGE_BYTES:
            return Outcome(
                verdict="give_up",
                detail=f"the message has {len(message)} bytes and SQS allows {MAX_MESSAGE_BYTES}: send a reference instead",
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
            detail="the answer has no MessageId, so it is not from SQS: check the endpoint",
            answer=answer.text,
        )


def _message(delivery: Delivery) -> bytes:
    """Return the envelope with the two characters that SQS refuses written as JSON escapes."""
    return envelope(delivery).replace("\ufffe".encode(), rb"\ufffe").replace("\uffff".encode(), rb"\uffff")


def _group(delivery: Delivery) -> str:
    """Return a name for the schedule that SQS accepts: up to 128 plain characters."""
    return hashlib.blake2b(f"{delivery.owner}\0{delivery.key}".encode(), digest_size=16).hexdigest()
