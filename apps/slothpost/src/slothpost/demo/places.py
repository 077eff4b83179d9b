"""What the visitor can ship something at: repositories, projects and apps, and the products that they are connected to."""

from __future__ import annotations

import msgspec

from slothpost.app import Slothpost
from slothpost.demo.local_services import LocalServices
from slothpost.demo.made_products import PRODUCTS, SPARE_REPOSITORY, MadeProduct
from slothpost.demo.sources_html import Place
from slothpost.model import Connection, Product
from slothpost.standins.github_repository import LocalRepository
from slothpost.standins.vercel import LocalProject
from tickler.table import MISSING

FIRST_VERSION = "1.0"
IDEA = "Add a dark mode"
IDEA_OF_WEBSITE = "Add a page about cold brew"

_MADE: dict[str, MadeProduct] = {made.repository: made for made in PRODUCTS.values()}


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A place with the parts of the stand-ins that it stands for. `product` is an id, empty for none."""

    place: Place
    product: str = ""
    repository: LocalRepository | None = None
    project: LocalProject | None = None
    app: int | None = None


class Places:
    def __init__(self, slothpost: Slothpost, services: LocalServices) -> None:
        self._slothpost = slothpost
        self._services = services

    async def find(self, id: str) -> Found | None:
        return next((found for found in await self.all() if found.place.id == id), None)

    async def all(self) -> list[Found]:
        """Return what is connected, by product, and then what is not."""
        connected: list[Found] = []
        for user in await self._slothpost.users.everyone():
            products = await self._slothpost.products.list(user.id)
            for product in sorted(products, key=lambda product: product.created_at):
                connections = self._slothpost.db.iterate(Connection.key(product.id))
                connected += [self._connected(product, connection) async for connection in connections]
        return [*connected, *self._free(connected)]

    def _connected(self, product: Product, connection: Connection) -> Found:
        id = f"{connection.source}-{product.id}"
        is_chosen = connection.external_id is not MISSING
        name = connection.name or "A webhook alone"
        place = Place(id=id, source=connection.source, name=name, product=product.name, is_chosen=is_chosen)
        match connection.source:
            case "github":
                repository = self._repository(connection)
                proposed = _proposed(place, _MADE.get(repository.name), "v")
                return Found(place=proposed, product=product.id, repository=repository, project=self._project_of(product))
            case "vercel":
                project = next((each for each in self._services.vercel.projects if each.id == connection.external_id), None)
                return Found(place=_proposed(place, None, ""), product=product.id, project=project)
        app = int(connection.external_id) if connection.external_id is not MISSING else None
        made = next((each for each in PRODUCTS.values() if each.app == app), None)
        return Found(place=_proposed(place, made, ""), product=product.id, app=app)

    def _free(self, connected: list[Found]) -> list[Found]:
        repositories = {found.repository.id for found in connected if found.repository is not None and found.place.is_chosen}
        projects = {found.project.id for found in connected if found.project is not None and found.place.source == "vercel"}
        return [
            *(
                Found(place=Place(id=f"project-{each.id}", source="vercel", name=each.name, title=IDEA_OF_WEBSITE), project=each)
                for each in self._services.vercel.projects
                if each.id not in projects
            ),
            *(
                Found(place=Place(id=f"repository-{each.id}", source="github", name=each.name), repository=each)
                for each in self._services.github.repositories
                if each.id not in repositories
            ),
        ]

    def _repository(self, connection: Connection) -> LocalRepository:
        """Return the repository of a connection; if it has chosen none yet, the one that is left for the wizard."""
        for repository in self._services.github.repositories:
            if str(repository.id) == connection.external_id:
                return repository
        return self._services.repository(SPARE_REPOSITORY)

    def _project_of(self, product: Product) -> LocalProject | None:
        """Return the project of the same product, which deploys what is merged."""
        return next((each for each in self._services.vercel.projects if each.id == product.vercel_project), None)


def _proposed(place: Place, made: MadeProduct | None, prefix: str) -> Place:
    """Fill the forms of a place with what is made up for it, so that one button is enough."""
    version = FIRST_VERSION if made is None else made.next_version
    return msgspec.structs.replace(place, title=IDEA if made is None else made.idea, version=f"{prefix}{version}")
