"""Our signatures equal those of AWS's documentation and of botocore."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from tickler.aws.signature import Credentials, Scope, canonical_path, signed

printable = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
words = st.text(printable, min_size=1, max_size=40)
scopes = st.builds(
    Scope,
    st.sampled_from(["eu-west-1", "cn-north-1", "us-gov-west-1"]),
    st.sampled_from(["dynamodb", "lambda", "sqs", "sts"]),
    st.sampled_from(["dynamodb.eu-west-1.amazonaws.com", "localhost:8000", "127.0.0.1:1"]),
)
headers = st.fixed_dictionaries(
    {"content-type": st.just("application/x-amz-json-1.0"), "x-amz-target": words}, optional={"accept-encoding": words}
)
# As they are sent: with a function's ARN, and with anything at all in place of it.
paths = st.just("/") | st.builds(
    "/2015-03-31/functions/{}/invocations".format,
    st.sampled_from(["digest", "arn:aws:lambda:eu-west-1:123456789012:function:digest:$LATEST"]).map(lambda arn: quote(arn, ""))
    | st.text(min_size=1).map(lambda name: quote(f"arn:{name}", "")),
)


def signed_by_botocore(
    headers: dict[str, str], body: bytes, credentials: Credentials, scope: Scope, path: str
) -> tuple[str, str, str]:
    """Return botocore's signature of the same headers."""
    stamp = headers["x-amz-date"]
    request: Any = AWSRequest("POST", f"http://{scope.host}{path}", data=body, headers=headers)
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
    paths,
)
def test_every_request_is_signed_as_botocore_signs_it(
    headers: dict[str, str], body: bytes, credentials: Credentials, scope: Scope, at: datetime, path: str
) -> None:
    made = signed(headers, body, credentials, scope, at, canonical_path(path))
    authorization = made.pop("authorization")
    reach, names, signature = signed_by_botocore(made, body, credentials, scope, path)
    assert authorization == f"AWS4-HMAC-SHA256 Credential={reach}, SignedHeaders={names}, Signature={signature}"
    assert headers.items() <= made.items()
    assert made.get("x-amz-security-token") == credentials.token


def test_what_is_percent_encoded_in_a_path_is_encoded_again() -> None:
    assert canonical_path("/") == "/"
    assert canonical_path("/2015-03-31/functions/a%3Ab%24c~d/invocations") == "/2015-03-31/functions/a%253Ab%2524c~d/invocations"


def test_another_day_region_or_secret_is_another_signature() -> None:
    """The cache of signing keys must not mix them up."""
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
    assert signed({}, b"", *first, "/other")["authorization"].rpartition("=")[2] not in made
