"""Regions, endpoints, credentials, and signatures that a server can verify."""

from __future__ import annotations

import asyncio
import shlex
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from dynamo.pauses import Pauses
from dynamo.scripted_service import Asked, ScriptedService, refusal
from tickler.aws.address import Address
from tickler.aws.credentials import Signer
from tickler.dynamo.client import Client
from tickler.dynamo.failures import RequestRefused
from tickler.errors import InvalidInput, StoreUnavailable

EXPIRED = refusal("ExpiredTokenException", "The security token included in the request is expired")


@asynccontextmanager
async def asking(endpoint: str, attempts: int = 4) -> AsyncIterator[Client]:
    client = Client(Address(region="eu-west-1", endpoint=endpoint, attempts=attempts))
    await client.open()
    try:
        yield client
    finally:
        await client.close()


class TestRegionAndEndpoint:
    def test_the_argument_comes_before_the_environment(self, aws: pytest.MonkeyPatch) -> None:
        aws.setenv("AWS_REGION", "us-east-2")
        aws.setenv("AWS_DEFAULT_REGION", "us-west-2")
        aws.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:1")
        client = Client(Address(region="eu-west-1", endpoint="http://localhost:2"))
        assert (client.region, client.endpoint) == ("eu-west-1", "http://localhost:2")

    @pytest.mark.parametrize(
        ("variables", "region"),
        [
            ({"AWS_REGION": "us-east-2", "AWS_DEFAULT_REGION": "us-west-2"}, "us-east-2"),
            ({"AWS_REGION": "us-east-2"}, "us-east-2"),
            ({"AWS_DEFAULT_REGION": "us-west-2"}, "us-west-2"),
            ({}, "ap-south-1"),
            ({"AWS_PROFILE": "other"}, "sa-east-1"),
        ],
    )
    def test_the_environment_comes_before_the_profile(
        self, variables: dict[str, str], region: str, aws: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "config").write_text("[default]\nregion = ap-south-1\n[profile other]\nregion = sa-east-1\n")
        for name, value in variables.items():
            aws.setenv(name, value)
        client = Client(Address())
        assert (client.region, client.endpoint) == (region, f"https://dynamodb.{region}.amazonaws.com")

    @pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"])
    def test_an_endpoint_comes_from_the_environment(self, name: str, aws: pytest.MonkeyPatch) -> None:
        aws.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
        aws.setenv(name, "http://localhost:8000/")
        assert Client(Address(region="eu-west-1")).endpoint == "http://localhost:8000"

    @pytest.mark.usefixtures("aws")
    @pytest.mark.parametrize(
        ("region", "endpoint"),
        [
            ("eu-west-1", "https://dynamodb.eu-west-1.amazonaws.com"),
            ("cn-north-1", "https://dynamodb.cn-north-1.amazonaws.com.cn"),
            ("us-gov-west-1", "https://dynamodb.us-gov-west-1.amazonaws.com"),
            ("local", "http://localhost:8000"),  # botocore's name for DynamoDB Local
        ],
    )
    def test_a_region_has_the_name_that_its_partition_gives_it(self, region: str, endpoint: str) -> None:
        assert Client(Address(region=region)).endpoint == endpoint

    @pytest.mark.usefixtures("aws")
    @pytest.mark.parametrize("service", ["sqs", "lambda"])
    @pytest.mark.parametrize(
        ("region", "domain"),
        [
            ("eu-west-1", "eu-west-1.amazonaws.com"),
            ("us-east-1", "us-east-1.amazonaws.com"),
            ("cn-north-1", "cn-north-1.amazonaws.com.cn"),
            ("us-gov-west-1", "us-gov-west-1.amazonaws.com"),
        ],
    )
    def test_other_services_have_theirs(self, service: str, region: str, domain: str) -> None:
        assert Signer(Address(region=region), service).endpoint == f"https://{service}.{domain}"

    def test_another_services_endpoint_comes_from_its_own_variable(self, aws: pytest.MonkeyPatch) -> None:
        aws.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
        aws.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:2")
        aws.setenv("AWS_ENDPOINT_URL_SQS", "http://localhost:3")
        address = Address(region="eu-west-1")
        found = [Signer(address, service).endpoint for service in ("sqs", "lambda")]
        assert found == ["http://localhost:3", "http://localhost:1"]

    @pytest.mark.usefixtures("aws")
    async def test_a_region_that_nobody_knows_is_refused(self) -> None:
        with pytest.raises(
            InvalidInput, match=r"^botocore knows no dynamodb endpoint in region 'nowhere': check the region's name$"
        ):
            await Client(Address(region="nowhere")).open()

    @pytest.mark.usefixtures("aws")
    async def test_no_region_at_all_is_refused_with_where_to_say_it(self) -> None:
        with pytest.raises(InvalidInput, match=r"^no AWS region: add \?region=eu-west-1 to the URL, or set AWS_REGION$"):
            await Client(Address()).open()

    @pytest.mark.usefixtures("aws")
    @pytest.mark.parametrize("endpoint", ["localhost:8000", "127.0.0.1:8000", "ftp://localhost", "localhost"])
    async def test_an_endpoint_that_is_no_address_is_refused_before_it_is_tried(self, endpoint: str) -> None:
        with pytest.raises(InvalidInput, match=rf"^endpoint: '{endpoint}' must start with https:// or http://$"):
            await Client(Address(region="eu-west-1", endpoint=endpoint)).open()

    @pytest.mark.usefixtures("aws")
    def test_a_slash_at_the_end_of_an_endpoint_changes_nothing(self) -> None:
        assert Client(Address(region="eu-west-1", endpoint="http://localhost:1/")).endpoint == "http://localhost:1"

    async def test_a_client_needs_no_region_until_it_is_opened(self, aws: pytest.MonkeyPatch) -> None:
        client = Client(Address())
        aws.setenv("AWS_REGION", "us-east-2")
        await client.open()
        await client.close()
        assert client.region == "us-east-2"

    async def test_a_profile_that_is_not_there_is_named(self, aws: pytest.MonkeyPatch) -> None:
        aws.setenv("AWS_PROFILE", "no-such-profile")
        with pytest.raises(InvalidInput, match=r"^invalid AWS configuration: .*no-such-profile.*: check AWS_PROFILE"):
            await Client(Address()).open()


def expected_signature(asked: Asked, credentials: ReadOnlyCredentials, service: str = "dynamodb") -> str:
    """Return botocore's signature of the request as received."""
    signed = asked.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    url = f"http://{asked.headers['host']}{asked.path}"
    request: Any = AWSRequest(asked.method, url, data=asked.body, headers={name: asked.headers[name] for name in signed})
    request.context["timestamp"] = asked.headers["x-amz-date"]
    auth: Any = SigV4Auth(credentials, service, "eu-west-1")
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return str(auth.signature(text, request))


class TestSignatures:
    @pytest.mark.parametrize("token", [None, "a/session+token=="])
    async def test_a_request_arrives_as_it_was_signed(
        self, token: str | None, service: ScriptedService, aws: pytest.MonkeyPatch
    ) -> None:
        if token is not None:
            aws.setenv("AWS_SESSION_TOKEN", token)
        async with asking(service.endpoint) as client:
            await client.call("PutItem", {"TableName": "schedules", "Item": {"pk": {"S": "größe"}}})
        (asked,) = service.asked
        scheme, _, fields = asked.headers["authorization"].partition(" ")
        credential, signed_headers, signature = fields.split(", ")
        assert scheme == "AWS4-HMAC-SHA256"
        assert f"http://{asked.headers['host']}" == service.endpoint
        assert credential == f"Credential=FIRSTKEY/{asked.headers['x-amz-date'][:8]}/eu-west-1/dynamodb/aws4_request"
        assert signature == f"Signature={expected_signature(asked, ReadOnlyCredentials('FIRSTKEY', 'first secret', token))}"
        assert asked.headers.get("x-amz-security-token") == token
        signed_at = datetime.strptime(asked.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        assert abs(signed_at - datetime.now(UTC)) < timedelta(minutes=1)
        must = {"host", "x-amz-date", "x-amz-target"} | ({"x-amz-security-token"} if token else set())
        assert must <= set(signed_headers.removeprefix("SignedHeaders=").split(";"))
        assert asked.headers["x-amz-target"] == "DynamoDB_20120810.PutItem"
        assert asked.headers["content-type"] == "application/x-amz-json-1.0"

    async def test_a_path_of_the_endpoint_is_signed_with_the_rest(self, service: ScriptedService) -> None:
        async with asking(f"{service.endpoint}/behind a/proxy/".replace(" ", "%20")) as client:
            await client.call("ListTables", {})
        (asked,) = service.asked
        assert asked.path == "/behind%20a/proxy/"
        assert expected_signature(asked, ReadOnlyCredentials("FIRSTKEY", "first secret", None)) in asked.headers["authorization"]

    @pytest.mark.usefixtures("aws")
    @pytest.mark.parametrize("base", ["", "/behind%20a/proxy"])
    @pytest.mark.parametrize("path", ["/", "/2015-03-31/functions/arn%3Aaws%3Alambda%3A%24LATEST/invocations"])
    async def test_any_path_below_it_is_too(self, base: str, path: str) -> None:
        signer = Signer(Address(region="eu-west-1", endpoint=f"http://localhost:1{base}"), "lambda")
        await signer.open()
        headers = await signer.headers({"content-type": "application/json"}, b"{}", path)
        asked = Asked("POST", base + path, headers, b"{}")
        expected = expected_signature(asked, ReadOnlyCredentials("FIRSTKEY", "first secret", None), "lambda")
        assert headers["authorization"].endswith(f"Signature={expected}")

    async def test_an_empty_session_token_is_none(
        self, service: ScriptedService, no_aws: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        no_aws.delenv("AWS_ACCESS_KEY_ID")
        (tmp_path / "credentials").write_text(
            "[default]\naws_access_key_id = FILEKEY\naws_secret_access_key = s\naws_session_token =\n"
        )
        async with asking(service.endpoint) as client:
            await client.call("ListTables", {})
        (asked,) = service.asked
        assert asked.key_id == "FILEKEY"
        assert "x-amz-security-token" not in asked.headers

    async def test_another_secret_makes_another_signature(self, service: ScriptedService) -> None:
        async with asking(service.endpoint) as client:
            await client.call("ListTables", {})
        (asked,) = service.asked
        wrong = expected_signature(asked, ReadOnlyCredentials("FIRSTKEY", "another secret", None))
        assert wrong not in asked.headers["authorization"]


class TestCredentials:
    @pytest.mark.usefixtures("no_aws")
    async def test_where_there_are_none_it_says_where_they_were_looked_for(self) -> None:
        client = Client(Address(region="eu-west-1", endpoint="http://localhost:1"))
        with pytest.raises(StoreUnavailable) as refused:
            await client.open()
        for place in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "SSO", "web identity", "container's role", "instance's role"):
            assert place in str(refused.value)
        assert "DynamoDB Local accepts any" in str(refused.value)

    @pytest.mark.usefixtures("no_aws")
    async def test_other_services_are_not_told_of_dynamodb(self) -> None:
        signer = Signer(Address(region="eu-west-1", endpoint="http://localhost:1"), "sqs")
        with pytest.raises(StoreUnavailable, match=r"^no AWS credentials for http://localhost:1: tried .*; set one of them up$"):
            await signer.open()

    async def test_half_a_key_is_named(self, no_aws: pytest.MonkeyPatch) -> None:
        no_aws.setenv("AWS_ACCESS_KEY_ID", "FIRSTKEY")
        client = Client(Address(region="eu-west-1", endpoint="http://localhost:1"))
        with pytest.raises(StoreUnavailable, match=r"^no AWS credentials: .*AWS_SECRET_ACCESS_KEY"):
            await client.open()

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("UnrecognizedClientException", "The security token included in the request is invalid."),
            ("AccessDeniedException", "User: arn:aws:iam::1:user/me is not authorized to perform: dynamodb:GetItem"),
            ("InvalidSignatureException", "Signature expired: 20300101T000000Z is now earlier than 20300101T000500Z"),
            ("MissingAuthenticationTokenException", "Request is missing Authentication Token"),
            ("IncompleteSignatureException", "Authorization header requires 'Signature' parameter."),
        ],
    )
    async def test_those_that_the_service_refuses_are_said_to_be_refused_and_not_tried_again(
        self, name: str, message: str, service: ScriptedService, pauses: Pauses
    ) -> None:
        service.answers = [refusal(name, message)]
        async with asking(service.endpoint) as client:
            with pytest.raises(
                StoreUnavailable, match=r"refused the credentials: .*check them, their policy, and this machine's clock"
            ) as refused:
                await client.call("GetItem", {})
        assert f"{message} ({name.removesuffix('Exception')})" in str(refused.value)
        assert isinstance(refused.value.__cause__, RequestRefused)
        assert len(service.asked) == 1
        assert pauses.attempts == []

    async def test_those_that_expired_are_looked_up_again_and_the_request_is_repeated(
        self, service: ScriptedService, aws: pytest.MonkeyPatch, pauses: Pauses
    ) -> None:
        service.answers = [EXPIRED]
        async with asking(service.endpoint) as client:
            aws.setenv("AWS_ACCESS_KEY_ID", "SECONDKEY")
            aws.setenv("AWS_SECRET_ACCESS_KEY", "second secret")
            await client.call("ListTables", {})
            assert client.usage.retries == {"ExpiredToken": 1}
        assert [asked.key_id for asked in service.asked] == ["FIRSTKEY", "SECONDKEY"]
        credentials = ReadOnlyCredentials("SECONDKEY", "second secret", None)
        assert expected_signature(service.asked[1], credentials) in service.asked[1].headers["authorization"]
        assert pauses.attempts == [1]

    @pytest.mark.usefixtures("pauses")
    async def test_where_there_are_no_newer_ones_it_says_that_they_expired(self, service: ScriptedService) -> None:
        service.answers = [EXPIRED] * 2
        async with asking(service.endpoint, attempts=2) as client:
            with pytest.raises(
                StoreUnavailable, match=r"failed after 2 attempts: the credentials have expired .*no newer ones: renew them in"
            ):
                await client.call("ListTables", {})
        assert len(service.asked) == 2

    async def test_where_they_are_gone_when_they_expire_it_says_that_there_are_none(
        self, service: ScriptedService, aws: pytest.MonkeyPatch
    ) -> None:
        service.answers = [EXPIRED]
        async with asking(service.endpoint) as client:
            aws.delenv("AWS_ACCESS_KEY_ID")
            with pytest.raises(StoreUnavailable, match=r"^no AWS credentials for "):
                await client.call("ListTables", {})
        assert len(service.asked) == 1


# Prints a new key each time, which expires so soon that every request renews it. From the second call on, it waits until the test
# has seen `asked-N` and created `go-N`; a wait for it on the event loop's thread would never end.
PROCESS = """
import json, os, sys, time
folder, expiration = sys.argv[1:]
number = 1 + sum(name.startswith("asked-") for name in os.listdir(folder))
open(os.path.join(folder, f"asked-{number}"), "w").close()
deadline = time.monotonic() + 20
while number > 1 and not os.path.exists(os.path.join(folder, f"go-{number}")):
    if time.monotonic() > deadline:
        sys.exit("nobody let it go on")
    time.sleep(0.005)
answer = {"Version": 1, "AccessKeyId": f"KEY{number}", "SecretAccessKey": "s", "SessionToken": f"token {number}"}
print(json.dumps({**answer, "Expiration": expiration}))
"""


class CredentialProcess:
    """A slow credential process, set up in the config file."""

    def __init__(self, folder: Path, lifetime: timedelta) -> None:
        self._folder = folder
        script = folder / "process.py"
        script.write_text(PROCESS)
        words = [sys.executable, "-ISs", str(script), str(folder), (datetime.now(UTC) + lifetime).isoformat()]
        (folder / "config").write_text(f"[default]\ncredential_process = {shlex.join(words)}\n")

    def has_asked(self, number: int) -> bool:
        return (self._folder / f"asked-{number}").exists()

    def let_go(self, number: int) -> None:
        (self._folder / f"go-{number}").touch()

    async def tick_and_let_go(self, number: int) -> int:
        """Keep working during call number `number` of the process, then let it answer."""
        ticks = 0
        async with asyncio.timeout(20):
            while not self.has_asked(number):
                await asyncio.sleep(0.001)
        for _ in range(100):
            await asyncio.sleep(0)
            ticks += 1
        self.let_go(number)
        return ticks


class TestCredentialsThatAreRenewed:
    @pytest.fixture
    def process(self, tmp_path: Path, no_aws: pytest.MonkeyPatch) -> CredentialProcess:
        return CredentialProcess(tmp_path, timedelta(minutes=5))

    @pytest.fixture
    async def service(self) -> AsyncIterator[ScriptedService]:
        async with ScriptedService() as service:
            yield service

    async def test_the_event_loop_runs_on_while_they_are(self, service: ScriptedService, process: CredentialProcess) -> None:
        async with asking(service.endpoint) as client:
            _, ticks = await asyncio.gather(client.call("ListTables", {}), process.tick_and_let_go(2))
            assert ticks == 100
            await asyncio.gather(client.call("ListTables", {}), process.tick_and_let_go(3))
        assert [asked.key_id for asked in service.asked] == ["KEY2", "KEY3"]
        assert [asked.headers["x-amz-security-token"] for asked in service.asked] == ["token 2", "token 3"]
        assert not process.has_asked(4)

    async def test_whoever_is_cancelled_meanwhile_does_not_wait_for_them(
        self, service: ScriptedService, process: CredentialProcess
    ) -> None:
        threads = set(threading.enumerate())
        async with asking(service.endpoint) as client:
            waiting = asyncio.create_task(client.call("ListTables", {}))
            async with asyncio.timeout(20):
                while not process.has_asked(2):
                    await asyncio.sleep(0.001)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        (thread,) = set(threading.enumerate()) - threads
        process.let_go(2)
        await asyncio.to_thread(thread.join, 20)
        assert not thread.is_alive(), "it ends when the process does"
        assert service.asked == []

    async def test_a_client_that_is_closed_meanwhile_says_so(self, service: ScriptedService, process: CredentialProcess) -> None:
        async with asking(service.endpoint) as client:
            waiting = asyncio.create_task(client.call("ListTables", {}))
            async with asyncio.timeout(20):
                while not process.has_asked(2):
                    await asyncio.sleep(0.001)
        process.let_go(2)
        with pytest.raises(StoreUnavailable, match="this client is closed"):
            await waiting
        assert service.asked == []

    @pytest.mark.parametrize(
        ("process_now", "why"),
        [
            ("import sys; sys.exit('the vault is sealed')", "the vault is sealed"),
            ("print('not JSON')", "Expecting value"),
            ("""print('{"Version": 1}')""", "Missing required key"),
        ],
        ids=["it fails", "it answers in prose", "it answers half"],
    )
    @pytest.mark.usefixtures("process")
    async def test_where_that_fails_it_says_why(
        self, process_now: str, why: str, service: ScriptedService, tmp_path: Path
    ) -> None:
        async with asking(service.endpoint) as client:
            (tmp_path / "process.py").write_text(process_now)
            with pytest.raises(StoreUnavailable, match=rf"^cannot refresh the AWS credentials: .*{why}.*custom-process$"):
                await client.call("ListTables", {})
        assert service.asked == []

    async def test_where_the_new_ones_are_old_too_it_says_so(
        self, service: ScriptedService, no_aws: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        process = CredentialProcess(tmp_path, timedelta(minutes=-5))
        async with asking(service.endpoint) as client:
            process.let_go(2)
            with pytest.raises(StoreUnavailable, match=r"cannot refresh the AWS credentials: .*still expired"):
                await client.call("ListTables", {})
        assert service.asked == []

    async def test_a_process_that_is_not_there_is_no_credentials(self, no_aws: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "config").write_text(f"[default]\ncredential_process = {tmp_path / 'missing'}\n")
        client = Client(Address(region="eu-west-1", endpoint="http://localhost:1"))
        with pytest.raises(StoreUnavailable, match=r"^no AWS credentials: .*missing"):
            await client.open()
