"""What `slothpost serve --demo` shows."""

from __future__ import annotations

from slothpost.app import Slothpost

DEMO_USER = "demo"


async def fill(slothpost: Slothpost) -> None:
    """Make the user of the demo, unless an earlier run has."""
    if await slothpost.users.get(DEMO_USER) is None:
        await slothpost.users.create("Demo", id=DEMO_USER, is_operator=True)
