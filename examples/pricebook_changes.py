r"""A change of prices by the GraphQL API of pricebook, with nothing but the standard library: drafted, checked, and approved.

EDITOR_TOKEN=$(pricebook token add editor --role read --role edit)
APPROVER_TOKEN=$(pricebook token add approver --role read --role approve)
export EDITOR_TOKEN APPROVER_TOKEN PRICEBOOK_URL=http://127.0.0.1:8323
python examples/pricebook_changes.py STORE PRODUCT
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

URL, EDITOR, APPROVER = (os.environ[name] for name in ("PRICEBOOK_URL", "EDITOR_TOKEN", "APPROVER_TOKEN"))

PRICE = """
query ($store: ID!, $product: ID!, $at: DateTime!) {
  priceAsOf(store: $store, product: $product, at: $at) { price { minor currency } effectiveDate }
}"""

CREATE = """
mutation ($title: String!, $day: Date!) {
  createPriceChange(input: {title: $title, reason: "agreed with marketing", day: $day}) { changeSet { id } }
}"""

ADD = """
mutation ($id: ID!, $store: ID!, $product: ID!, $minor: MinorUnits!) {
  addPrices(input: {id: $id, prices: [{store: $store, product: $product, price: {minor: $minor, currency: "EUR"}}]}) { count }
}"""

SUBMIT = """
mutation ($id: ID!) {
  submitPriceChange(input: {id: $id}) {
    changeSet { rev report { canApprove raised lowered findings { severity code message } } }
  }
}"""

APPROVE = """
mutation ($id: ID!, $rev: Int!) {
  approvePriceChange(input: {id: $id, rev: $rev}) { changeSet { state } }
}"""


def ask(token: str, query: str, **variables: object) -> Any:
    """Send an operation, and return its data. An error has a code for programs, and a sentence for people."""
    body = json.dumps({"query": query, "variables": variables}).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    try:
        with urlopen(Request(f"{URL}/graphql", body, headers), timeout=30) as answer:
            found = json.load(answer)
    except HTTPError as refused:
        sys.exit(f"{refused.code}: {refused.read().decode()}")
    for error in found.get("errors", []):
        sys.exit(f"{error['extensions']['code']}: {error['message']}")
    return found["data"]


def main(store: str, product: str) -> None:
    """Let a product cost 10 % less in a store, from midnight of the day after tomorrow on."""
    day = datetime.now(UTC).date() + timedelta(days=2)
    found = ask(EDITOR, PRICE, store=store, product=product, at=f"{day}T12:00:00Z")["priceAsOf"]
    if found is None:
        sys.exit(f"{product} has no price in store {store}: check both names")
    before = found["price"]["minor"]

    id = ask(EDITOR, CREATE, title=f"{product} for less", day=str(day))["createPriceChange"]["changeSet"]["id"]
    ask(EDITOR, ADD, id=id, store=store, product=product, minor=before * 9 // 10)
    submitted = ask(EDITOR, SUBMIT, id=id)["submitPriceChange"]["changeSet"]
    print("findings:", [finding["message"] for finding in submitted["report"]["findings"]])

    if submitted["report"]["canApprove"]:
        approved = ask(APPROVER, APPROVE, id=id, rev=submitted["rev"])["approvePriceChange"]["changeSet"]
        print(approved["state"], f"{before} becomes {before * 9 // 10} on {day}")


if __name__ == "__main__":
    main(*sys.argv[1:])
