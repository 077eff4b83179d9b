"""Delivery to SQS and Lambda, on an engine that checks signatures and runs functions, and on servers that misbehave."""

from __future__ import annotations

import asyncio
import errno
import io
import itertools
import json
import os
import shlex
import socket
import sys
import threading
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest

from dynamo.scripted_service import Answer, ScriptedService, refusal
from dynamodb_server import AwsServer
from tickler.deliver.targets.aws_http import AllowedArns
from tickler.deliver.targets.aws_lambda import LambdaDeliverer
from tickler.deliver.targets.sqs import MAX_MESSAGE_BYTES, SqsDeliverer
from tickler.errors import InvalidInput
from tickler.model.delivery import Deliverer, Delivery, Outcome
from tickler.model.fire import fire_id
from tickler.model.target import LambdaTarget, SqsTarget
from tickler.webhooks.envelope import envelope

ACCOUNT = "000000000000"
QUEUE = SqsTarget(f"arn:aws:sqs:eu-west-1:{ACCOUNT}:fires")
FUNCTION = LambdaTarget(f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:digest")
EVERYTHING = AllowedArns(("*",))
DONE = {"sqs": Answer(body=b'{"MessageId": "1"}'), "lambda": Answer(body=b'"done"')}
EXPIRED = refusal("ExpiredTokenException", "The security token included in the request is expired", 403)

both = pytest.mark.parametrize("service_name", ["sqs", "lambda"])

# What it does is its payload's to say.
HANDLER = """
def handler(event, context):
    doing = event["data"]["payload"]["do"]
    if doing == "fail":
        raise ValueError("the printer is on fire")
    if doing == "fail at length":
        raise ValueError("fire! " * 5000)
    if doing == "return much":
        return "ä" * 100_000
    return {"event": event, "called": context.invoked_function_arn}
"""


def delivery(payload: object = None, *, nominal_at: int = 1_767_225_600_123, attempt: int = 1, timeout_s: float = 20) -> Delivery:
    return Delivery(
        id=fire_id("u1", "digest", nominal_at),
        owner="u1",
        key="digest",
        nominal_at=nominal_at,
        attempt=attempt,
        payload=payload,
        target=None,
        timeout_s=timeout_s,
        started_at=nominal_at + 5,
    )


Deliver = Callable[[Delivery], Awaitable[Outcome]]


@asynccontextmanager
async def delivering(
    service_name: str, endpoint: str | None = None, arn: str | None = None, allowed: AllowedArns = EVERYTHING
) -> AsyncIterator[Deliver]:
    if service_name == "sqs":
        to_queue: Deliverer[SqsTarget] = SqsDeliverer(allowed, endpoint)
        queue = SqsTarget(arn) if arn else QUEUE
        await to_queue.open()
        try:
            yield lambda delivery: to_queue.deliver(delivery, queue)
        finally:
            await to_queue.close()
    else:
        to_function: Deliverer[LambdaTarget] = LambdaDeliverer(allowed, endpoint)
        function = LambdaTarget(arn) if arn else FUNCTION
        await to_function.open()
        try:
            yield lambda delivery: to_function.deliver(delivery, function)
        finally:
            await to_function.close()


async def deliver_once(service_name: str, delivery: Delivery, endpoint: str | None = None, arn: str | None = None) -> Outcome:
    async with delivering(service_name, endpoint, arn) as deliver:
        return await deliver(delivery)


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment in which AWS's tools find a key, and nothing else."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FIRSTKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "first secret")
    return monkeypatch


@pytest.fixture
async def service() -> AsyncIterator[ScriptedService]:
    async with ScriptedService() as service:
        yield service


class Cloud:
    """An AWS of this test run's own, as its root user sees it."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._numbers = itertools.count()

    def client(self, name: str, region: str = "eu-west-1") -> Any:
        """Of boto3, which has no types. To be closed."""
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return closing(boto3.client(name, region_name=region, endpoint_url=self.endpoint, **keys))

    def user(self, *actions: str) -> tuple[str, str]:
        """Return key and secret of a user who may do that."""
        name = f"user{next(self._numbers)}"
        with self.client("iam") as iam:
            iam.create_user(UserName=name)
            if actions:
                allow = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
                document = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
                iam.put_user_policy(UserName=name, PolicyName="worker", PolicyDocument=document)
            key = iam.create_access_key(UserName=name)["AccessKey"]
            return key["AccessKeyId"], key["SecretAccessKey"]

    def queue(self, suffix: str = "", region: str = "eu-west-1", **attributes: str) -> str:
        """Create one, and return its ARN."""
        name = f"queue{next(self._numbers)}{suffix}"
        if suffix == ".fifo":
            attributes["FifoQueue"] = "true"
        with self.client("sqs", region) as sqs:
            sqs.create_queue(QueueName=name, Attributes=attributes)
        return f"arn:aws:sqs:{region}:{ACCOUNT}:{name}"

    def messages(self, arn: str) -> list[dict[str, Any]]:
        """Receive all messages of a queue."""
        region, _, name = arn.split(":")[3:]
        with self.client("sqs", region) as sqs:
            url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
            asked = {"MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["All"], "MaxNumberOfMessages": 10}
            found: list[dict[str, Any]] = sqs.receive_message(QueueUrl=url, **asked).get("Messages", [])
            return found

    def function(self) -> str:
        """Create a function with this code, and return its ARN."""
        name = f"function{next(self._numbers)}"
        trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        with self.client("iam") as iam:
            role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
        with self.client("lambda") as functions:
            made = functions.create_function(
                FunctionName=name, Runtime="python3.12", Role=role, Handler="app.handler", Code={"ZipFile": _zipped(HANDLER)}
            )
            return str(made["FunctionArn"])


def _zipped(code: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("app.py", code)
    return file.getvalue()


@pytest.fixture(scope="module")
def server() -> Iterator[Cloud]:
    with AwsServer("sqs,lambda,iam") as server:
        yield Cloud(server.endpoint)


@pytest.fixture(scope="module")
def worker(server: Cloud) -> tuple[str, str]:
    return server.user("sqs:SendMessage", "lambda:InvokeFunction")


@pytest.fixture
def cloud(server: Cloud, worker: tuple[str, str], aws: pytest.MonkeyPatch) -> Cloud:
    """Where the environment leads, with the keys of a user who may do what a worker must."""
    aws.setenv("AWS_ENDPOINT_URL", server.endpoint)
    aws.setenv("AWS_ACCESS_KEY_ID", worker[0])
    aws.setenv("AWS_SECRET_ACCESS_KEY", worker[1])
    return server


@pytest.fixture(scope="module")
def function(server: Cloud) -> str:
    return server.function()


class TestTheEnvelope:
    def test_it_says_all_there_is_to_know_of_the_fire(self) -> None:
        assert json.loads(envelope(delivery({"größe": [1, None, "x"]}, attempt=3))) == {
            "type": "schedule.fired",
            "timestamp": "2026-01-01T00:00:00.123Z",
            "data": {
                "id": fire_id("u1", "digest", 1_767_225_600_123),
                "owner": "u1",
                "key": "digest",
                "nominal_at": 1_767_225_600_123,
                "attempt": 3,
                "payload": {"größe": [1, None, "x"]},
            },
        }

    def test_milliseconds_are_written_even_where_there_are_none(self) -> None:
        assert json.loads(envelope(delivery(nominal_at=1_767_225_600_000)))["timestamp"] == "2026-01-01T00:00:00.000Z"

    def test_no_payload_is_null(self) -> None:
        assert json.loads(envelope(delivery()))["data"]["payload"] is None


class TestAllowedArns:
    @pytest.mark.parametrize(
        ("patterns", "allowed"),
        [
            ((), False),
            ((QUEUE.arn,), True),
            ((QUEUE.arn[:-1],), False),
            ((QUEUE.arn + "2",), False),
            ((QUEUE.arn[:-1] + "*",), True),
            ((QUEUE.arn + "*",), True),
            (("arn:aws:sqs:eu-west-1:*",), True),
            (("arn:aws:sqs:us-east-1:*",), False),
            (("arn:aws:lambda:*", QUEUE.arn), True),
            (("*",), True),
        ],
    )
    def test_an_arn_is_allowed_whole_or_by_how_it_begins(self, patterns: tuple[str, ...], allowed: bool) -> None:
        assert AllowedArns(patterns).allows(QUEUE.arn) is allowed

    @pytest.mark.parametrize(
        ("environ", "patterns"),
        [
            ({}, ()),
            ({"TICKLER_ALLOW_ARNS": ""}, ()),
            ({"TICKLER_ALLOW_ARNS": " arn:aws:sqs:* ,, arn:aws:lambda:*,"}, ("arn:aws:sqs:*", "arn:aws:lambda:*")),
        ],
    )
    def test_they_come_from_the_environment(self, environ: dict[str, str], patterns: tuple[str, ...]) -> None:
        assert AllowedArns.from_environment(environ) == AllowedArns(patterns)

    @pytest.mark.parametrize("pattern", ["fires", "arn:aws:sqs:*:fires", "**", "a*", "arn:aws:sqs:**", "https://sqs/fires"])
    def test_one_that_would_never_fit_is_refused(self, pattern: str) -> None:
        with pytest.raises(InvalidInput, match=r"^TICKLER_ALLOW_ARNS: '.*' is neither an ARN nor a prefix of one"):
            AllowedArns.from_environment({"TICKLER_ALLOW_ARNS": f"{QUEUE.arn},{pattern}"})

    @both
    async def test_nothing_is_sent_to_one_that_is_not_allowed(
        self, service_name: str, service: ScriptedService, aws: pytest.MonkeyPatch
    ) -> None:
        """Nor are credentials looked for, of which there are none."""
        aws.delenv("AWS_ACCESS_KEY_ID")
        allowed = AllowedArns(("arn:aws:sqs:us-east-1:*",))
        async with delivering(service_name, service.endpoint, allowed=allowed) as deliver:
            outcome = await deliver(delivery())
        arn = QUEUE.arn if service_name == "sqs" else FUNCTION.arn
        assert outcome == Outcome(
            verdict="give_up",
            detail=f"{arn} is not allowed: add it, or a prefix of it with a '*', to TICKLER_ALLOW_ARNS of the workers",
        )
        assert service.asked == []


class TestAQueue:
    async def test_a_fire_becomes_a_message(self, cloud: Cloud) -> None:
        arn = cloud.queue()
        sent = delivery({"to": "größe@example.com", "n": [1, 2.5, None]})
        outcome = await deliver_once("sqs", sent, arn=arn)
        (message,) = cloud.messages(arn)
        assert json.loads(message["Body"]) == json.loads(envelope(sent))
        assert message["Body"] == envelope(sent).decode()
        assert message["MessageAttributes"] == {"webhook-id": {"DataType": "String", "StringValue": sent.id}}
        assert "MessageGroupId" not in message["Attributes"]
        assert outcome == Outcome(verdict="delivered", status=200, answer=outcome.answer)
        assert json.loads(outcome.answer or "")["MessageId"] == message["MessageId"]

    async def test_every_character_of_a_payload_arrives(self, cloud: Cloud) -> None:
        """Though SQS takes fewer than there are in JSON."""
        arn = cloud.queue()
        payload = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000), 0x1FFFF, 0x1F642, 0x10FFFF]))
        outcome = await deliver_once("sqs", delivery(payload), arn=arn)
        assert outcome.verdict == "delivered"
        (message,) = cloud.messages(arn)
        assert json.loads(message["Body"])["data"]["payload"] == payload

    async def test_attempts_at_one_fire_are_one_message_of_a_fifo_queue(self, cloud: Cloud) -> None:
        arn = cloud.queue(".fifo")
        first, second = delivery("first"), delivery("second", nominal_at=1_767_225_660_000)
        async with delivering("sqs", arn=arn) as deliver:
            outcomes = [await deliver(each) for each in (first, delivery("first", attempt=2), second)]
        assert [outcome.verdict for outcome in outcomes] == ["delivered"] * 3
        (message,) = cloud.messages(arn)[:1]
        assert message["Body"] == envelope(first).decode()
        assert message["Attributes"]["MessageDeduplicationId"] == first.id
        with cloud.client("sqs") as sqs:
            url = sqs.get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"]
            there = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert sum(int(count) for name, count in there.items() if name.startswith("ApproximateNumberOfMessages")) == 2

    async def test_a_schedule_is_a_group_of_a_fifo_queue(self, cloud: Cloud) -> None:
        arn = cloud.queue(".fifo")
        fires = [delivery(nominal_at=1_767_225_600_000), delivery(nominal_at=1_767_225_660_000)]
        other = msgspec.structs.replace(fires[0], id="fire_other", owner="u1/digest", key="x" * 512)
        async with delivering("sqs", arn=arn) as deliver:
            for each in (*fires, other):
                assert (await deliver(each)).verdict == "delivered"
        groups: dict[str, list[str]] = {}
        for message in cloud.messages(arn):
            group = message["Attributes"]["MessageGroupId"]
            groups.setdefault(group, []).append(message["Attributes"]["MessageDeduplicationId"])
            assert len(group) <= 128
        assert sorted(groups.values()) == sorted([[each.id for each in fires], [other.id]])

    async def test_it_is_the_one_in_the_region_that_the_arn_names(self, cloud: Cloud) -> None:
        there = cloud.queue(region="us-west-2")
        here = there.replace("us-west-2", "eu-west-1")
        with cloud.client("sqs") as sqs:
            sqs.create_queue(QueueName=here.rpartition(":")[2])
        assert (await deliver_once("sqs", delivery("far"), arn=there)).verdict == "delivered"
        assert cloud.messages(here) == []
        assert len(cloud.messages(there)) == 1

    async def test_one_that_is_not_there_may_be_made(self, cloud: Cloud) -> None:
        arn = f"arn:aws:sqs:eu-west-1:{ACCOUNT}:later"
        async with delivering("sqs", arn=arn) as deliver:
            refused = await deliver(delivery())
            with cloud.client("sqs") as sqs:
                sqs.create_queue(QueueName="later")
            sent = await deliver(delivery(attempt=2))
        assert (refused.verdict, refused.status) == ("retry", 400)
        assert refused.detail is not None
        assert refused.detail.startswith("sqs answered 400: The specified queue does not exist")
        assert refused.detail.endswith("(QueueDoesNotExist): create it, or correct the ARN")
        assert sent.verdict == "delivered"

    async def test_what_is_larger_than_the_queue_allows_is_given_up(self, cloud: Cloud) -> None:
        arn = cloud.queue(MaximumMessageSize="1024")
        outcome = await deliver_once("sqs", delivery("x" * 1024), arn=arn)
        assert (outcome.verdict, outcome.status) == ("give_up", 400)
        assert outcome.detail is not None
        assert "must be shorter than 1024 bytes" in outcome.detail
        assert "change the schedule" in outcome.detail
        assert cloud.messages(arn) == []

    async def test_the_largest_message_there_is_is_sent(self, cloud: Cloud) -> None:
        arn = cloud.queue()
        around = len(envelope(delivery("")))
        outcome = await deliver_once("sqs", delivery("x" * (MAX_MESSAGE_BYTES - around)), arn=arn)
        assert outcome.verdict == "delivered"
        (message,) = cloud.messages(arn)
        assert len(message["Body"]) == MAX_MESSAGE_BYTES

    async def test_what_is_larger_than_any_queue_allows_is_not_even_sent(self, service: ScriptedService) -> None:
        around = len(envelope(delivery("")))
        outcome = await deliver_once("sqs", delivery("x" * (MAX_MESSAGE_BYTES - around + 1)), service.endpoint)
        assert outcome == Outcome(
            verdict="give_up", detail="the message has 1048577 bytes and SQS allows 1048576: send a reference instead"
        )
        assert service.asked == []

    @pytest.mark.parametrize("body", [b"<html>Welcome to our WLAN</html>", b"", b"{}", b'{"MessageId": null}', b"[1]"])
    async def test_an_answer_that_names_no_message_is_not_taken_for_one_of_sqs(
        self, body: bytes, service: ScriptedService
    ) -> None:
        service.answers = [Answer(body=body)]
        outcome = await deliver_once("sqs", delivery(), service.endpoint)
        assert outcome == Outcome(
            verdict="retry",
            status=200,
            detail="the answer has no MessageId, so it is not from SQS: check the endpoint",
            answer=body.decode() or None,
        )


class TestAFunction:
    @pytest.mark.parametrize("qualifier", ["", ":$LATEST", ":1", ":live"])
    async def test_a_fire_becomes_an_invocation(self, qualifier: str, cloud: Cloud, function: str) -> None:
        with cloud.client("lambda") as functions:
            functions.publish_version(FunctionName=function)
            if qualifier == ":live":
                functions.create_alias(FunctionName=function, Name="live", FunctionVersion="1")
        sent = delivery({"do": "your work", "größe": "ä"})
        outcome = await deliver_once("lambda", sent, arn=function + qualifier)
        assert outcome == Outcome(verdict="delivered", status=200, answer=outcome.answer)
        assert json.loads(outcome.answer or "") == {"event": json.loads(envelope(sent)), "called": function + qualifier}

    async def test_one_that_fails_is_called_again_and_its_error_is_shown(self, cloud: Cloud, function: str) -> None:
        outcome = await deliver_once("lambda", delivery({"do": "fail"}), arn=function)
        assert (outcome.verdict, outcome.status) == ("retry", 200)
        assert outcome.detail is not None
        assert outcome.detail.startswith("the function failed (Unhandled): ")
        assert outcome.detail.endswith("the printer is on fire; see its log")
        assert "the printer is on fire" in json.loads(outcome.answer or "")["errorMessage"]

    async def test_of_a_long_error_its_beginning_is_shown(self, cloud: Cloud, function: str) -> None:
        outcome = await deliver_once("lambda", delivery({"do": "fail at length"}), arn=function)
        assert outcome.verdict == "retry"
        assert outcome.answer is not None
        assert len(outcome.answer) == 2048
        assert outcome.detail is not None
        assert "fire! fire! " in outcome.detail
        assert len(outcome.detail) < 1000

    async def test_of_a_long_answer_the_first_2_kb_are_kept(self, cloud: Cloud, function: str) -> None:
        async with delivering("lambda", arn=function) as deliver:
            for _ in range(2):
                outcome = await deliver(delivery({"do": "return much"}))
                assert outcome == Outcome(verdict="delivered", status=200, answer='"' + "ä" * 1023)

    @pytest.mark.parametrize("qualifier", ["nobody", "nobody:live"])
    async def test_one_that_is_not_there_may_be_deployed(self, qualifier: str, cloud: Cloud) -> None:
        outcome = await deliver_once("lambda", delivery(), arn=f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:{qualifier}")
        assert (outcome.verdict, outcome.status) == ("retry", 404)
        assert outcome.detail is not None
        assert outcome.detail.endswith("(ResourceNotFound): create it, or correct the ARN")

    async def test_one_that_is_busy_is_left_alone_for_as_long_as_it_says(self, cloud: Cloud) -> None:
        arn = cloud.function()
        with cloud.client("lambda") as functions:
            functions.put_function_concurrency(FunctionName=arn, ReservedConcurrentExecutions=0)
        outcome = await deliver_once("lambda", delivery({"do": "your work"}), arn=arn)
        assert (outcome.verdict, outcome.status, outcome.retry_after_ms) == ("retry", 429, 1000)
        assert outcome.detail is not None
        assert outcome.detail.endswith("(TooManyRequests): raise the limits of the service, or spread the schedules")

    async def test_it_is_called_where_boto3_calls_it(self, service: ScriptedService) -> None:
        arn = f"{FUNCTION.arn}:$LATEST"
        service.answers = [DONE["lambda"], DONE["lambda"]]
        assert (await deliver_once("lambda", delivery(), service.endpoint, arn)).answer == '"done"'
        with closing(boto3.client("lambda", region_name="eu-west-1", endpoint_url=service.endpoint)) as functions:
            await asyncio.to_thread(functions.invoke, FunctionName=arn, Payload=envelope(delivery()))
        ours, theirs = service.asked
        assert (ours.method, ours.path, ours.body) == (theirs.method, theirs.path, theirs.body)
        assert ours.path.endswith("%3Afunction%3Adigest%3A%24LATEST/invocations")
        assert ours.headers["x-amz-invocation-type"] == "RequestResponse"

    async def test_what_it_returns_is_not_taken_for_an_error_of_the_service(self, service: ScriptedService) -> None:
        """Or else it would be called twice."""
        service.answers = [Answer(body=EXPIRED.body)]
        outcome = await deliver_once("lambda", delivery(), service.endpoint)
        assert outcome.verdict == "delivered"
        assert len(service.asked) == 1

    async def test_an_error_in_lambdas_own_words_is_read(self, service: ScriptedService) -> None:
        service.answers = [
            Answer(
                403,
                b'{"Type": "User", "Message": "not authorized to perform: lambda:InvokeFunction"}',
                {"x-amzn-ErrorType": "AccessDeniedException:http://internal.amazon.com/coral/com.amazonaws.awsgirapi/"},
            )
        ]
        outcome = await deliver_once("lambda", delivery(), service.endpoint)
        assert outcome.verdict == "retry"
        assert outcome.detail == (
            "lambda answered 403: not authorized to perform: lambda:InvokeFunction (AccessDenied): check that the "
            "credentials are valid and allow lambda:InvokeFunction, and that this machine's clock is right"
        )

    @pytest.mark.parametrize("body", [b"", b"Segmentation fault", b'{"errorMessage": 1}', b"[" * 60_000, b'"\xff\xfe'])
    async def test_one_that_fails_without_a_word_has_failed(self, body: bytes, service: ScriptedService) -> None:
        service.answers = [Answer(body=body, headers={"X-Amz-Function-Error": "Unhandled"})]
        outcome = await deliver_once("lambda", delivery(), service.endpoint)
        assert outcome.verdict == "retry"
        assert outcome.detail == "the function failed (Unhandled): no reason given; see its log"


class TestRefusals:
    @both
    async def test_a_key_that_may_not_do_it_is_told_what_it_must_be_allowed(
        self, service_name: str, cloud: Cloud, aws: pytest.MonkeyPatch, function: str
    ) -> None:
        key, secret = cloud.user()
        aws.setenv("AWS_ACCESS_KEY_ID", key)
        aws.setenv("AWS_SECRET_ACCESS_KEY", secret)
        outcome = await deliver_once(service_name, delivery(), arn=cloud.queue() if service_name == "sqs" else function)
        assert (outcome.verdict, outcome.status) == ("retry", 403)
        action = {"sqs": "sqs:SendMessage", "lambda": "lambda:InvokeFunction"}[service_name]
        assert outcome.detail is not None
        assert f"(AccessDenied): check that the credentials are valid and allow {action}" in outcome.detail

    @both
    async def test_a_wrong_secret_is_found_out(
        self, service_name: str, cloud: Cloud, aws: pytest.MonkeyPatch, function: str
    ) -> None:
        """So what these tests deliver was signed as it has to be."""
        aws.setenv("AWS_SECRET_ACCESS_KEY", "another secret")
        outcome = await deliver_once(service_name, delivery(), arn=cloud.queue() if service_name == "sqs" else function)
        assert (outcome.verdict, outcome.status) == ("retry", 403)
        assert outcome.detail is not None
        assert "signature we calculated does not match" in outcome.detail

    @both
    @pytest.mark.parametrize(
        ("status", "code"),
        [
            (400, "ThrottlingException"),
            (400, "RequestThrottled"),
            (400, "KmsAccessDenied"),
            (400, "KmsThrottled"),
            (400, "IncompleteSignature"),
            (400, "SnapStartException"),
            (403, "InvalidClientTokenId"),
            (403, "AccessDeniedException"),
            (403, "EFSMountFailureException"),
            (404, "ResourceNotFoundException"),
            (408, "SnapStartTimeoutException"),
            (409, "ResourceConflictException"),
            (410, "EFSIOException"),
            (429, "TooManyRequestsException"),
            (500, "ServiceException"),
            (502, "KMSDisabledException"),
            (503, "ServiceUnavailable"),
        ],
    )
    async def test_what_may_be_mended_is_tried_again(
        self, service_name: str, status: int, code: str, service: ScriptedService
    ) -> None:
        service.answers = [refusal(code, "It is\0not to be.", status)]
        outcome = await deliver_once(service_name, delivery(), service.endpoint)
        assert (outcome.verdict, outcome.status) == ("retry", status)
        assert outcome.detail is not None
        shown = code.removesuffix("Exception")
        assert outcome.detail.startswith(f"{service_name} answered {status}: It isnot to be. ({shown}): ")
        assert outcome.answer == service_answer(code)
        assert len(service.asked) == 1

    @both
    @pytest.mark.parametrize(
        ("status", "code"),
        [
            (400, "InvalidMessageContents"),
            (400, "InvalidParameterValueException"),
            (400, "InvalidRequestContentException"),
            (400, "UnsupportedOperation"),
            (413, "RequestTooLargeException"),
            (415, "UnsupportedMediaTypeException"),
        ],
    )
    async def test_what_will_never_do_is_given_up(
        self, service_name: str, status: int, code: str, service: ScriptedService
    ) -> None:
        service.answers = [refusal(code, "It is not to be.", status)]
        outcome = await deliver_once(service_name, delivery(), service.endpoint)
        assert (outcome.verdict, outcome.status) == ("give_up", status)
        assert outcome.detail == (
            f"{service_name} answered {status}: It is not to be. ({code.removesuffix('Exception')}): "
            "a retry cannot succeed: change the schedule"
        )

    @both
    @pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 413, 500, 502, 504])
    @pytest.mark.parametrize(
        "body", [b"", b"<html>Bad gateway</html>", b"\xff\0" * 50_000, b'{"a":' + b"[" * 60_000, b'{"code": 400}', b'{"__ty']
    )
    async def test_an_answer_that_is_not_of_aws_says_nothing_of_the_delivery(
        self, service_name: str, status: int, body: bytes, service: ScriptedService
    ) -> None:
        service.answers = [Answer(status, body, {"Location": f"{service.endpoint}/elsewhere"})]
        outcome = await deliver_once(service_name, delivery(), service.endpoint)
        assert (outcome.verdict, outcome.status) == ("retry", status)
        assert outcome.detail is not None
        assert "(not an AWS error)" in outcome.detail
        assert "\0" not in outcome.detail + (outcome.answer or "")
        assert len((outcome.answer or "").encode()) <= 2048
        assert len(service.asked) == 1

    @pytest.mark.parametrize(("header", "wait_ms"), [("7", 7000), ("soon", None), ("-1", None), ("9" * 400, 86_400_000)])
    async def test_how_long_to_wait_is_passed_on(self, header: str, wait_ms: int | None, service: ScriptedService) -> None:
        throttled = refusal("TooManyRequestsException", "Rate exceeded", 429)
        service.answers = [Answer(429, throttled.body, {"Retry-After": header})]
        assert (await deliver_once("lambda", delivery(), service.endpoint)).retry_after_ms == wait_ms


def service_answer(code: str) -> str:
    return refusal(code, "It is\0not to be.").body.decode()


class TestCredentials:
    @both
    async def test_those_that_expired_are_looked_up_again_and_it_is_sent_again(
        self, service_name: str, service: ScriptedService, aws: pytest.MonkeyPatch
    ) -> None:
        async with delivering(service_name, service.endpoint) as deliver:
            service.answers = [DONE[service_name], EXPIRED, DONE[service_name]]
            assert (await deliver(delivery())).verdict == "delivered"
            aws.setenv("AWS_ACCESS_KEY_ID", "SECONDKEY")
            assert (await deliver(delivery())).verdict == "delivered"
        assert [asked.key_id for asked in service.asked] == ["FIRSTKEY", "FIRSTKEY", "SECONDKEY"]
        assert service.asked[1].body == service.asked[2].body

    @both
    async def test_where_there_are_no_newer_ones_it_says_that_they_expired(
        self, service_name: str, service: ScriptedService
    ) -> None:
        service.answers = [EXPIRED] * 3
        outcome = await deliver_once(service_name, delivery(), service.endpoint)
        assert (outcome.verdict, outcome.status) == ("retry", 403)
        assert outcome.detail is not None
        assert "(ExpiredToken): the credentials have expired and no newer ones were found: renew them in" in outcome.detail
        assert len(service.asked) == 2

    @both
    async def test_where_there_are_none_it_says_where_they_were_looked_for(
        self, service_name: str, service: ScriptedService, aws: pytest.MonkeyPatch
    ) -> None:
        aws.delenv("AWS_ACCESS_KEY_ID")
        aws.delenv("AWS_SECRET_ACCESS_KEY")
        service.answers = [DONE[service_name]]
        async with delivering(service_name, service.endpoint) as deliver:
            refused = await deliver(delivery())
            assert service.asked == []
            aws.setenv("AWS_ACCESS_KEY_ID", "LATERKEY")
            aws.setenv("AWS_SECRET_ACCESS_KEY", "later secret")
            sent = await deliver(delivery(attempt=2))
        assert (refused.verdict, refused.status) == ("retry", 0)
        assert refused.detail is not None
        assert refused.detail.startswith(f"no AWS credentials for {service.endpoint}: tried the environment")
        assert sent.verdict == "delivered"

    @both
    async def test_a_configuration_that_cannot_be_used_may_be_mended(
        self, service_name: str, service: ScriptedService, aws: pytest.MonkeyPatch
    ) -> None:
        aws.setenv("AWS_PROFILE", "no-such-profile")
        outcome = await deliver_once(service_name, delivery(), service.endpoint)
        assert outcome.verdict == "retry"
        assert outcome.detail is not None
        assert "no-such-profile" in outcome.detail
        assert "AWS_PROFILE" in outcome.detail

    async def test_they_are_looked_up_once_a_region_however_many_deliver_at_once(
        self, service: ScriptedService, aws: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        aws.delenv("AWS_ACCESS_KEY_ID")
        key = json.dumps({"Version": 1, "AccessKeyId": "KEY", "SecretAccessKey": "s"})
        code = f"open({str(tmp_path / 'asked')!r}, 'a').write('x'); print({key!r})"
        (tmp_path / "config").write_text(f"[default]\ncredential_process = {shlex.join([sys.executable, '-ISsc', code])}\n")
        service.answers = [DONE["sqs"]] * 20
        queues = [SqsTarget(QUEUE.arn.replace("eu-west-1", region)) for region in ("eu-west-1", "us-west-2")]
        deliverer = SqsDeliverer(EVERYTHING, service.endpoint)
        await deliverer.open()
        try:
            outcomes = await asyncio.gather(*(deliverer.deliver(delivery(), queue) for queue in queues * 10))
        finally:
            await deliverer.close()
        assert {outcome.verdict for outcome in outcomes} == {"delivered"}
        assert {asked.headers["authorization"].split("/")[2] for asked in service.asked} == {"eu-west-1", "us-west-2"}
        assert (tmp_path / "asked").read_text() == "xx"

    async def test_regions_that_schedules_name_are_not_all_remembered(
        self, service: ScriptedService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tickler.deliver.targets.aws_http.MAX_REGIONS", 2)
        regions = ["eu-west-1", "us-west-2", "eu-west-1", "made-up-1", "eu-west-1", "made-up-2"]
        service.answers = [DONE["sqs"]] * len(regions)
        deliverer = SqsDeliverer(EVERYTHING, service.endpoint)
        await deliverer.open()
        try:
            for region in regions:
                outcome = await deliverer.deliver(delivery(), SqsTarget(QUEUE.arn.replace("eu-west-1", region)))
                assert outcome.verdict == "delivered"
            assert list(deliverer._signers) == ["eu-west-1", "made-up-2"]
        finally:
            await deliverer.close()

    @both
    async def test_they_are_found_although_all_threads_of_the_event_loop_are_taken(
        self, service_name: str, service: ScriptedService
    ) -> None:
        loop, taken = asyncio.get_running_loop(), threading.Event()
        service.answers = [DONE[service_name]]
        with ThreadPoolExecutor(max_workers=1) as pool:
            loop.set_default_executor(pool)
            busy = loop.run_in_executor(None, taken.wait, 20)
            try:
                outcome = await deliver_once(service_name, delivery(), service.endpoint.replace("127.0.0.1", "localhost"))
            finally:
                taken.set()
                await busy
        assert outcome.verdict == "delivered"


class TestEndpoints:
    @both
    async def test_the_argument_comes_before_the_environment_and_the_services_variable_before_the_general_one(
        self, service_name: str, service: ScriptedService, aws: pytest.MonkeyPatch
    ) -> None:
        nowhere = _nowhere()
        service.answers = [DONE[service_name]] * 3
        aws.setenv("AWS_ENDPOINT_URL", service.endpoint)
        assert (await deliver_once(service_name, delivery())).verdict == "delivered"
        aws.setenv("AWS_ENDPOINT_URL", nowhere)
        aws.setenv(f"AWS_ENDPOINT_URL_{service_name.upper()}", service.endpoint)
        assert (await deliver_once(service_name, delivery())).verdict == "delivered"
        aws.setenv(f"AWS_ENDPOINT_URL_{service_name.upper()}", nowhere)
        assert (await deliver_once(service_name, delivery(), service.endpoint)).verdict == "delivered"

    async def test_a_queues_url_is_below_the_endpoint(self, service: ScriptedService) -> None:
        service.answers = [DONE["sqs"]]
        await deliver_once("sqs", delivery(), service.endpoint)
        (asked,) = service.asked
        assert asked.path == "/"
        assert json.loads(asked.body)["QueueUrl"] == f"{service.endpoint}/{ACCOUNT}/fires"

    @both
    async def test_a_region_that_nobody_knows_is_named(self, service_name: str) -> None:
        """Before anything is sent."""
        arn = (QUEUE.arn if service_name == "sqs" else FUNCTION.arn).replace("eu-west-1", "nowhere")
        outcome = await deliver_once(service_name, delivery(), arn=arn)
        assert outcome == Outcome(
            verdict="retry", detail=f"botocore knows no {service_name} endpoint in region 'nowhere': check the region's name"
        )


@asynccontextmanager
async def saying(*parts: bytes) -> AsyncIterator[str]:
    """Yield the endpoint of a server that gives this answer to everything, and hangs up."""

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                writer.write(part)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(say, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def _nowhere() -> str:
    """Return an endpoint that refuses connections."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


class TestTheWay:
    @both
    async def test_nobody_there_may_be_mended(self, service_name: str) -> None:
        outcome = await deliver_once(service_name, delivery(), _nowhere())
        assert (outcome.verdict, outcome.status) == ("retry", 0)
        assert outcome.detail is not None
        assert outcome.detail.startswith(f"{service_name} could not be reached (ClientConnectorError: ")
        assert outcome.detail.endswith("): check the endpoint and the network")

    @both
    @pytest.mark.parametrize(
        "answer",
        [
            b"",
            b"HTTP/1.1 200",
            b"220 mail.example.com ESMTP\r\n",
            b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        ],
        ids=["nothing", "half a line", "another protocol", "endless headers", "half an answer"],
    )
    async def test_what_is_no_answer_is_none(self, service_name: str, answer: bytes) -> None:
        async with saying(answer) as endpoint:
            outcome = await deliver_once(service_name, delivery(), endpoint)
        assert (outcome.verdict, outcome.status, outcome.answer) == ("retry", 0, None)
        assert outcome.detail is not None
        assert outcome.detail.startswith(f"{service_name} could not be reached (")
        assert len(outcome.detail) < 1000

    async def test_an_answer_without_end_is_not_read_to_its_end(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Amz-Function-Error: Unhandled\r\n\r\n"
        async with saying(head, *[b"1000\r\n" + b"x" * 4096 + b"\r\n"] * 100_000) as endpoint, asyncio.timeout(20):
            outcome = await deliver_once("lambda", delivery(), endpoint)
        assert (outcome.verdict, outcome.answer) == ("retry", "x" * 2048)

    @both
    async def test_an_answer_that_does_not_come_in_time_is_not_waited_for(
        self, service_name: str, service: ScriptedService
    ) -> None:
        never = asyncio.Event()
        service.answers = [Answer(before=never.wait)]
        async with asyncio.timeout(20):
            outcome = await deliver_once(service_name, delivery(timeout_s=0.1), service.endpoint)
        why = {
            "sqs": "check the endpoint and the network, or make the schedule's timeout longer",
            "lambda": "the function may still run: make the schedule's timeout longer than the function's own",
        }
        assert outcome == Outcome(verdict="retry", detail=f"{service_name} did not answer within 0.1 s: {why[service_name]}")

    @both
    async def test_whoever_is_cancelled_does_not_wait(self, service_name: str, service: ScriptedService) -> None:
        arrived, never = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            arrived.set()
            await never.wait()

        service.answers = [Answer(before=wait)]
        async with delivering(service_name, service.endpoint) as deliver:
            waiting = asyncio.ensure_future(deliver(delivery()))
            async with asyncio.timeout(20):
                await arrived.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting


class TestOpeningAndClosing:
    @both
    async def test_a_connection_is_used_again_and_closed_in_the_end(self, service_name: str, service: ScriptedService) -> None:
        service.answers = [DONE[service_name]] * 3
        async with delivering(service_name, service.endpoint) as deliver:
            for _ in range(3):
                assert (await deliver(delivery())).verdict == "delivered"
            assert service.connections == 1
        async with asyncio.timeout(20):
            await service.nobody_connected.wait()

    async def test_one_that_is_not_open_says_so(self) -> None:
        deliverer = SqsDeliverer(EVERYTHING)
        with pytest.raises(RuntimeError, match=r"^this deliverer is not open: await open\(\) first$"):
            await deliverer.deliver(delivery(), QUEUE)
        await deliverer.close()

    async def test_one_may_be_opened_twice_and_again(self, service: ScriptedService) -> None:
        service.answers = [DONE["sqs"]] * 2
        deliverer = SqsDeliverer(EVERYTHING, service.endpoint)
        for _ in range(2):
            await deliverer.open()
            await deliverer.open()
            assert (await deliverer.deliver(delivery(), QUEUE)).verdict == "delivered"
            await deliverer.close()


@both
@pytest.mark.parametrize("step", ["connect", "read files"])
async def test_a_worker_that_has_run_out_of_file_descriptors_releases_the_fire(
    service_name: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    if step == "connect":
        monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", no_more)
    else:
        monkeypatch.setattr("tickler.deliver.targets.aws_http.Signer", no_more)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    outcome = await deliver_once(service_name, delivery(), "http://127.0.0.1:9")
    assert (outcome.verdict, outcome.obstacle) == ("release", "exhausted")
    assert outcome.detail == f"the worker could not reach {service_name}: too many open files"
