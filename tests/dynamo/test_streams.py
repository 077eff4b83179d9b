"""Requests to DynamoDB Streams: their host, their signature, and what happens when they are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aws.test_credentials import expected_signature
from botocore.credentials import ReadOnlyCredentials

from dynamo.pauses import Pauses
from dynamo.scripted_service import Answer, ScriptedService, refusal
from tickler.aws.address import Address
from tickler.dynamo.client import Client
from tickler.dynamo.failures import EXPIRED_ITERATOR, NOT_FOUND, TRIMMED, RequestRefused
from tickler.errors import StoreUnavailable

OPERATIONS = ["DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"]


@asynccontextmanager
async def asking(address: Address) -> AsyncIterator[Client]:
    client = Client(address)
    await client.open()
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.usefixtures("aws")
class TestEndpoints:
    @pytest.mark.parametrize(
        ("region", "endpoint", "streams"),
        [
            ("eu-west-1", None, "https://streams.dynamodb.eu-west-1.amazonaws.com"),
            ("cn-north-1", None, "https://streams.dynamodb.cn-north-1.amazonaws.com.cn"),
            ("us-gov-west-1", None, "https://streams.dynamodb.us-gov-west-1.amazonaws.com"),
            ("eusc-de-east-1", None, "https://streams.dynamodb.eusc-de-east-1.amazonaws.eu"),
            ("us-east-1", "https://dynamodb.us-east-1.amazonaws.com", "https://streams.dynamodb.us-east-1.amazonaws.com"),
            ("us-east-1", "https://dynamodb.us-east-1.amazonaws.com/", "https://streams.dynamodb.us-east-1.amazonaws.com"),
            (
                "us-east-1",
                "https://dynamodb-fips.us-east-1.amazonaws.com",
                "https://streams.dynamodb-fips.us-east-1.amazonaws.com",
            ),
            ("us-east-1", "https://dynamodb.us-east-1.api.aws", "https://streams-dynamodb.us-east-1.api.aws"),
            ("us-east-1", "https://dynamodb-fips.us-east-1.api.aws", "https://streams-dynamodb-fips.us-east-1.api.aws"),
        ],
    )
    def test_aws_has_another_host_for_streams_in_each_of_its_variants(
        self, region: str, endpoint: str | None, streams: str
    ) -> None:
        assert Client(Address(region=region, endpoint=endpoint)).streams_endpoint == streams

    @pytest.mark.parametrize("endpoint", ["http://localhost:8000", "https://dynamodb.example.com", "https://localhost/a/path"])
    def test_any_other_endpoint_serves_both(self, endpoint: str) -> None:
        assert Client(Address(region="eu-west-1", endpoint=endpoint)).streams_endpoint == endpoint

    def test_botocores_name_for_dynamodb_local_serves_both(self) -> None:
        assert Client(Address(region="local")).streams_endpoint == "http://localhost:8000"

    def test_the_environment_may_name_another(self, aws: pytest.MonkeyPatch) -> None:
        aws.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:1")
        assert Client(Address(region="eu-west-1")).streams_endpoint == "http://localhost:1"
        aws.setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "http://localhost:2/")
        assert Client(Address(region="eu-west-1")).streams_endpoint == "http://localhost:2"
        assert Client(Address(region="eu-west-1", endpoint="http://localhost:3")).streams_endpoint == "http://localhost:3"


class TestRequests:
    @pytest.mark.parametrize("operation", OPERATIONS)
    async def test_they_are_named_and_signed_as_the_service_expects(self, operation: str, service: ScriptedService) -> None:
        async with asking(Address(region="eu-west-1", endpoint=service.endpoint)) as client:
            await client.call(operation, {"StreamArn": "arn"})
        (asked,) = service.asked
        assert asked.headers["x-amz-target"] == f"DynamoDBStreams_20120810.{operation}"
        assert "/eu-west-1/dynamodb/aws4_request" in asked.headers["authorization"]
        assert expected_signature(asked, ReadOnlyCredentials("FIRSTKEY", "first secret", None)) in asked.headers["authorization"]

    async def test_on_another_host_they_are_signed_for_that(self, service: ScriptedService, aws: pytest.MonkeyPatch) -> None:
        async with ScriptedService() as streams:
            aws.setenv("AWS_ENDPOINT_URL_DYNAMODB", service.endpoint)
            aws.setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", streams.endpoint)
            async with asking(Address(region="eu-west-1")) as client:
                await client.call("DescribeTable", {})
                await client.call("DescribeStream", {})
            assert [each.headers["x-amz-target"].partition(".")[2] for each in service.asked] == ["DescribeTable"]
            (asked,) = streams.asked
            assert f"http://{asked.headers['host']}" == streams.endpoint
            signature = expected_signature(asked, ReadOnlyCredentials("FIRSTKEY", "first secret", None))
            assert signature in asked.headers["authorization"]

    async def test_expired_credentials_are_renewed_there_too(
        self, service: ScriptedService, aws: pytest.MonkeyPatch, pauses: Pauses
    ) -> None:
        async with ScriptedService() as streams:
            aws.setenv("AWS_ENDPOINT_URL_DYNAMODB", service.endpoint)
            aws.setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", streams.endpoint)
            async with asking(Address(region="eu-west-1")) as client:
                await client.call("GetRecords", {})
                aws.setenv("AWS_ACCESS_KEY_ID", "SECONDKEY")
                streams.answers = [refusal("ExpiredTokenException", "expired")]
                await client.call("GetRecords", {})
            assert [asked.key_id for asked in streams.asked] == ["FIRSTKEY", "FIRSTKEY", "SECONDKEY"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "code"),
        [
            ("TrimmedDataAccessException", TRIMMED),
            ("ExpiredIteratorException", EXPIRED_ITERATOR),
            ("ResourceNotFoundException", NOT_FOUND),
        ],
    )
    async def test_what_another_request_can_mend_is_not_repeated(
        self, name: str, code: str, service: ScriptedService, pauses: Pauses
    ) -> None:
        service.answers = [refusal(name, "no")]
        async with asking(Address(region="eu-west-1", endpoint=service.endpoint)) as client:
            with pytest.raises(RequestRefused) as refused:
                await client.call("GetRecords", {})
        assert refused.value.code == code
        assert len(service.asked) == 1

    async def test_throttling_is_repeated_and_says_at_last_what_to_do(self, service: ScriptedService, pauses: Pauses) -> None:
        service.answers = [refusal("LimitExceededException", "slow down"), Answer()]
        async with asking(Address(region="eu-west-1", endpoint=service.endpoint, attempts=3)) as client:
            assert await client.call("GetRecords", {}) == {}
            service.answers = [refusal("LimitExceededException", "slow down")] * 3
            with pytest.raises(
                StoreUnavailable,
                match=r"GetRecords failed .*throttled \(LimitExceeded\): let at most two consumers read a stream",
            ):
                await client.call("GetRecords", {})
