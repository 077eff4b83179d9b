"""Endpoints of services that belong together, as botocore's endpoint rules name them."""

from __future__ import annotations

from itertools import product
from typing import Any

import botocore.exceptions
import botocore.session
from botocore.endpoint_provider import EndpointProvider


def endpoint_of_related(endpoint: str, region: str, service: str, related: str) -> str:
    """Return the endpoint of a related service. `service` and `related` are names of botocore's data.

    If `endpoint` is the one of AWS for `service`, it is AWS's for the related service, in the same variant: FIPS, dual stack, or
    neither. Any other endpoint, such as DynamoDB Local, serves both.
    """
    if not endpoint.startswith("https://"):
        return endpoint
    loader: Any = botocore.session.get_session().get_component("data_loader")  # botocore has no types
    partitions = loader.load_data("partitions")
    ours, theirs = (
        EndpointProvider(loader.load_service_model(name, "endpoint-rule-set-1"), partitions) for name in (service, related)
    )
    for fips, dual_stack in product((False, True), repeat=2):
        variant = {"Region": region, "UseFIPS": fips, "UseDualStack": dual_stack}
        try:
            if ours.resolve_endpoint(**variant).url == endpoint:
                return str(theirs.resolve_endpoint(**variant).url)
        except botocore.exceptions.BotoCoreError:
            continue  # the partition has no such variant
    return endpoint
