"""Signatures made by hand are those that AWS documents and botocore makes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from tickler.dynamo.signature import Credentials, Scope, signed

printable = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
words = st.text(printable, min_size=1, max_size=40)
scopes = st.builds(
    Scope,
    st.sampled_from(["eu-west-1", "cn-north-1", "us-gov-west-1"]),
    st.sampled_from(["dynamodb", "sts"]),
    st.sampled_from(["dynamodb.eu-west-1.amazonaws.com", "localhost:8000", "127.0.0.1:1"]),
)
headers = st.fixed_dictionaries(
    {"content-type": st.just("application/x-amz-json-1.0"), "x-amz-target": words}, optional={"accept-encoding": words}
)


def signed_by_botocore(
    headers: dict[str, str], body: bytes, credentials: Credentials, scope: Scope, stamp: str
) -> tuple[str, str, str]:
    """The signature, of the headers that ours were made of."""
    request: Any = AWSRequest("POST", f"http://{scope.host}/", data=body, headers=headers)
    request.context["timestamp"] = stamp
    auth: Any = SigV4Auth(ReadOnlyCredentials(*credentials), scope.service, scope.region)
    names = auth.signed_headers(auth.headers_to_sign(request))
    signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    return auth.scope(request), names, signature


def test_the_example_of_awss_own_test_suite_is_signed_as_it_says() -> None:
    """`post-vanilla`."""
    credentials = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None)
    scope = Scope("us-east-1", "service", "example.amazonaws.com")
    made = signed({}, b"", credentials, scope, datetime(2015, 8, 30, 12, 36, tzinfo=UTC))
    assert made == {
        "host": "example.amazonaws.com",
        "x-amz-date": "20150830T123600Z",
        "authorization": (
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, "
            "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        ),
    }


@settings(max_examples=200, deadline=None)
@given(
    headers,
    st.binary(max_size=200),
    st.builds(Credentials, words, words, st.none() | words),
    scopes,
    st.datetimes(datetime(2000, 1, 1), datetime(2099, 12, 31), timezones=st.just(UTC)),
)
def test_every_request_is_signed_as_botocore_signs_it(
    headers: dict[str, str], body: bytes, credentials: Credentials, scope: Scope, at: datetime
) -> None:
    made = signed(headers, body, credentials, scope, at)
    authorization = made.pop("authorization")
    reach, names, signature = signed_by_botocore(made, body, credentials, scope, made["x-amz-date"])
    assert authorization == f"AWS4-HMAC-SHA256 Credential={reach}, SignedHeaders={names}, Signature={signature}"
    assert headers.items() <= made.items()
    assert made.get("x-amz-security-token") == credentials.token


def test_another_day_region_or_secret_is_another_signature() -> None:
    """Though keys are kept for as long as they are good."""
    first = Credentials("KEY", "first", None), Scope("eu-west-1", "dynamodb", "localhost"), datetime(2030, 1, 1, tzinfo=UTC)
    others = [
        (first[0]._replace(secret_key="second"), first[1], first[2]),
        (first[0], first[1]._replace(region="eu-west-2"), first[2]),
        (first[0], first[1]._replace(host="localhost:8000"), first[2]),
        (first[0], first[1], datetime(2030, 1, 2, tzinfo=UTC)),
    ]
    made = [signed({}, b"", *each)["authorization"].rpartition("=")[2] for each in [first, *others, first]]
    assert len(set(made)) == len(others) + 1
    assert made[0] == made[-1]
