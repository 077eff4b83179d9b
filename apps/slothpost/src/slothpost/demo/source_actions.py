"""What the forms of the page do on which the visitor ships something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from slothpost.demo.local_services import LocalServices
from slothpost.demo.places import Found, Places
from slothpost.demo.shipped import InStore, Merged, Released
from slothpost.demo.shipper import Shipper
from slothpost.demo.sources_html import Said
from slothpost.model import NETWORK_NAMES, ChannelName

Fields = Mapping[str, str]
Act = Callable[[Found, Fields], Awaitable[Said]]

MAX_LINE = 200


class Impossible(Exception):
    """A form asks for what is not there, or not any more."""


class SourceActions:
    def __init__(self, services: LocalServices, places: Places, shipper: Shipper) -> None:
        self._services = services
        self._places = places
        self._shipper = shipper
        self._actions: Mapping[str, Act] = {
            "merge": self._merge,
            "release": self._release,
            "deploy": self._deploy,
            "put-in-store": self._put_in_store,
            "test": self._test,
        }

    async def act(self, action: str, fields: Fields) -> Said:
        """Do what a form says; `Impossible` if it is of a page that is too old."""
        if action == "revoke":
            return self._revoke("threads" if fields.get("place") == "threads" else "x")
        found = await self._places.find(fields.get("place", ""))
        act = self._actions.get(action)
        if found is None or act is None:
            raise Impossible
        return await act(found, fields)

    async def _merge(self, found: Found, fields: Fields) -> Said:
        if found.repository is None:
            raise Impossible
        title = _line(fields, "title")
        answers = await self._shipper.merge(found.product, found.repository, Merged(title), found.project)
        return Said(f"Merged “{title}”.", tuple(answers))

    async def _release(self, found: Found, fields: Fields) -> Said:
        if found.repository is None:
            raise Impossible
        tag = _line(fields, "version")
        released = Released(tag, tag.removeprefix("v"), fields.get("notes", ""))
        return Said(f"Published {tag}.", tuple(await self._shipper.release(found.product, found.repository, released)))

    async def _deploy(self, found: Found, fields: Fields) -> Said:
        if found.project is None:
            raise Impossible
        title = _line(fields, "title")
        return Said(f"Deployed “{title}”.", tuple(await self._shipper.deploy(found.project, title)))

    async def _put_in_store(self, found: Found, fields: Fields) -> Said:
        if found.app is None:
            raise Impossible
        live = InStore(_line(fields, "version"), fields.get("notes", ""))
        answers = await self._shipper.put_in_store(found.product, found.app, found.place.name, live)
        return Said(f"Version {live.version} is live.", tuple(answers))

    async def _test(self, found: Found, fields: Fields) -> Said:
        if found.place.source == "appstore":
            return Said("Sent the test.", tuple(await self._shipper.test_appstore(found.product)))
        if found.repository is None:
            raise Impossible
        return Said("Sent the test.", tuple(await self._shipper.test_github(found.product, found.repository)))

    def _revoke(self, network: ChannelName) -> Said:
        """End slothpost's access at a network, as the owners of its accounts can in their settings there."""
        (self._services.x if network == "x" else self._services.threads).revoke_all()
        name = NETWORK_NAMES[network]
        return Said(f"{name} has ended slothpost's access. The next post there waits until you connect the account again.")


def _line(fields: Fields, name: str) -> str:
    line = " ".join(fields.get(name, "").split())[:MAX_LINE]
    if not line:
        raise Impossible
    return line
