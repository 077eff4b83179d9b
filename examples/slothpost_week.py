"""A week of posts by the JSON API of slothpost, with nothing but the standard library.

SLOTHPOST_URL=http://127.0.0.1:8322 SLOTHPOST_TOKEN=sp_… python examples/slothpost_week.py
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

URL, TOKEN = os.environ["SLOTHPOST_URL"], os.environ["SLOTHPOST_TOKEN"]


def ask(method: str, path: str, body: object = None) -> Any:
    """Send a request, and return the JSON of its answer."""
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{URL}/api{path}", content, headers, method=method), timeout=30) as answer:
        return json.load(answer)


def main() -> None:
    """Plan a product, write a post, and approve what waits and is fine."""
    product = ask("POST", "/products", {"name": "Teapot", "url": "https://teapot.example.com"})
    channels = f"/products/{product['id']}/channels"
    plan = {"days": {"tue": "09:00", "thu": ["09:00", "17:30"], "mon": None}, "tz": "Europe/Paris"}
    channel = ask("PUT", f"{channels}/x/plan", plan)
    print("drafts next at", channel["next_draft"], "and posts at", channel["next_slot"])

    try:
        ask("PUT", f"{channels}/threads/plan", {"days": {"mon": {"enabled": True}}})
    except HTTPError as error:
        problem = json.load(error)
        print(problem["status"], problem["field"], problem["detail"])

    ask("POST", f"{channels}/x/posts", {"text": "Tea timers now survive a restart."})
    for card in ask("GET", "/review")["items"]:
        check = card["check"]
        print(card["slot_at"], f"{check['length']} of {check['limit']}", card["text"])
        if not check["problems"] and not check["links"]:
            ask("POST", f"/posts/{card['id']}/approve", {"text": card["text"]})  # this text, and no other
    for post in ask("GET", "/posts?state=approved")["items"]:
        print("approved", post["slot_at"], post["held"] or "nothing holds it up")


if __name__ == "__main__":
    main()
