"""Delivers to AWS Lambda: a fire becomes an invocation."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import quote

from tickler.deliver.targets.aws_http import Answer, AwsDeliverer, Request
from tickler.model.delivery import Delivery, Outcome
from tickler.model.target import LambdaTarget
from tickler.webhooks.envelope import envelope

_HEADERS = {"content-type": "application/json", "x-amz-invocation-type": "RequestResponse"}


class LambdaDeliverer(AwsDeliverer[LambdaTarget]):
    """Calls the function with the envelope as its event, and waits for what it returns.

    With the invocation type `Event`, AWS would queue the call and answer at once: a failed function would count as delivered,
    and AWS would retry it out of sight. This way the schedule's attempts apply, and the function's error is in the history. A
    function that runs longer than the schedule's timeout counts as failed, and is called again while it still runs: make that
    timeout longer than the function's own.
    """

    service: ClassVar[str] = "lambda"
    action: ClassVar[str] = "lambda:InvokeFunction"
    when_late: ClassVar[str] = "the function may still run: make the schedule's timeout longer than the function's own"

    def _request(self, delivery: Delivery, arn: str, endpoint: str) -> Request:
        return Request(f"/2015-03-31/functions/{quote(arn, safe='')}/invocations", _HEADERS, envelope(delivery))

    def _read(self, answer: Answer) -> Outcome:
        failure = answer.headers.get("X-Amz-Function-Error")
        if failure is None:
            return Outcome(verdict="delivered", status=answer.status, answer=answer.text)
        reason = ": ".join(filter(None, map(answer.field, ("errorType", "errorMessage")))) or "no reason given"
        return Outcome(
            verdict="retry",
            status=answer.status,
            detail=f"the function failed ({failure}): {reason}; see its log",
            answer=answer.text,
        )
