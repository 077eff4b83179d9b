"""The wizard that connects a source: it shows the webhook with its secret, waits for the first delivery, and turns green."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from litestar import Response, get, post

from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.model import Source, User
from slothpost.settings import Settings
from slothpost.sources.connections import RepositoryChoice
from slothpost.sources.setup import VERCEL_RETURN_PATH, Setup
from slothpost.web.context import HttpRequest, part, slothpost_of, user_of
from slothpost.web.pages.environment import sentence_case
from slothpost.web.pages.form_errors import FORM, FieldErrors, errors_of
from slothpost.web.pages.products import SOURCES
from slothpost.web.pages.rendering import page, read_form, redirect
from tickler.errors import DecryptionFailed, InvalidInput

WIZARD = "/products/{product_id:str}/connect"
FIELDS = ("token", "repository", "project", "app_id", "country", "secret")
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")

_SEALED = "slothpost: token in the wizard of {}"


@get(f"{WIZARD}/{{source:str}}")
async def wizard(request: HttpRequest) -> Response[str]:
    product_id, source = part(request, "product_id"), part(request, "source")
    return await _page(request, product_id, _source(source))


@get(f"{WIZARD}/{{source:str}}/status")
async def status(request: HttpRequest) -> Response[dict[str, bool]]:
    """Return whether the first delivery has come, for a page that waits for it."""
    product_id, source = part(request, "product_id"), part(request, "source")
    setup = await _setup(request, product_id, _source(source))
    return Response({"is_live": setup is not None and setup.is_live})


@post(f"{WIZARD}/{{source:str}}/repositories", status_code=200)
async def list_repositories(request: HttpRequest) -> Response[str]:
    """Show the repositories of a token. The token goes along encrypted, so that it need not be typed again."""
    product_id, source = part(request, "product_id"), part(request, "source")
    _only("github", source)
    slothpost, user, fields = slothpost_of(request), user_of(request), await read_form(request)
    await slothpost.products.get(user.id, product_id)
    token = fields.get("token", "").strip()
    try:
        found = await slothpost.connections.github_repositories(token)
    except (InvalidField, InvalidInput, NotAllowed) as error:
        return await _again(request, product_id, "github", error)
    if not found:
        none = InvalidField("token", "this token reaches no repository that you may push to: give it access to one")
        return await _again(request, product_id, "github", none)
    sealed = slothpost.t.encryption.encrypt(token, purpose=_SEALED.format(user.id))
    return await _page(request, product_id, "github", repositories=found, sealed=sealed)


@post(f"{WIZARD}/{{source:str}}", status_code=200)
async def connect(request: HttpRequest) -> Response[str]:
    """Connect what was chosen. The secret of a new webhook is on the page this once."""
    product_id, source = part(request, "product_id"), part(request, "source")
    fields, name = await read_form(request), _source(source)
    try:
        setup = await _connect(request, user_of(request), product_id, name, fields)
    except (InvalidField, InvalidInput, NotAllowed) as error:
        return await _again(request, product_id, name, error, typed=fields)
    return await _page(request, product_id, name, setup=setup)


@post(f"{WIZARD}/{{source:str}}/new-secret", status_code=200)
async def new_secret(request: HttpRequest) -> Response[str]:
    product_id, source = part(request, "product_id"), part(request, "source")
    await read_form(request)
    name = _source(source)
    setup = await slothpost_of(request).connections.new_secret(user_of(request).id, product_id, name)
    return await _page(request, product_id, name, setup=setup)


@post(f"{WIZARD}/{{source:str}}/disconnect", status_code=200)
async def disconnect(request: HttpRequest) -> Response[bytes]:
    product_id, source = part(request, "product_id"), part(request, "source")
    await read_form(request)
    await slothpost_of(request).connections.disconnect(user_of(request).id, product_id, _source(source))
    return redirect(f"/products/{product_id}#sources", "disconnected")


@post(f"{WIZARD}/{{source:str}}/own-secret", status_code=200)
async def use_vercel_secret(request: HttpRequest) -> Response[Any]:
    """Keep the secret of a webhook of the user's own team."""
    product_id, source = part(request, "product_id"), part(request, "source")
    _only("vercel", source)
    fields = await read_form(request)
    try:
        await slothpost_of(request).connections.use_vercel_secret(user_of(request).id, product_id, fields.get("secret", ""))
    except InvalidField as error:
        return await _again(request, product_id, "vercel", error)
    return redirect(f"/products/{product_id}/connect/vercel", "saved")


@get(f"{WIZARD}/{{source:str}}/install")
async def install_vercel(request: HttpRequest) -> Response[bytes]:
    """Send the browser to Vercel. A link, since a form must not lead to another site."""
    product_id, source = part(request, "product_id"), part(request, "source")
    _only("vercel", source)
    address = await slothpost_of(request).connections.vercel_install_url(user_of(request).id, product_id)
    return Response(b"", status_code=303, headers={"location": address, "cache-control": "no-store"})


@get(VERCEL_RETURN_PATH)
async def vercel_callback(request: HttpRequest) -> Response[bytes]:
    """Vercel sends the browser back here, with a code."""
    query = request.query_params
    product = await slothpost_of(request).connections.vercel_authorized(
        user_of(request).id,
        query.get("code", ""),
        query.get("configurationId", ""),
        query.get("teamId") or None,
        query.get("state", ""),
    )
    return redirect(f"/products/{product}/connect/vercel", "connected")


HANDLERS = [
    wizard, status, list_repositories, connect, new_secret, disconnect, use_vercel_secret, install_vercel, vercel_callback
]  # fmt: skip


async def _connect(request: HttpRequest, user: User, product: str, source: Source, fields: Mapping[str, str]) -> Setup:
    connections = slothpost_of(request).connections
    if source == "vercel":
        return await connections.claim_vercel(user.id, product, fields.get("project", ""))
    if source == "appstore":
        country = fields.get("country", "").strip() or "us"
        return await connections.connect_appstore(user.id, product, fields.get("app_id", "").strip() or None, country)
    if not fields.get("token") and not fields.get("sealed"):
        return await connections.setup(user.id, product, source)  # the webhook alone
    return await connections.connect_github(user.id, product, _token(request, user, fields), fields.get("repository", "").strip())


def _token(request: HttpRequest, user: User, fields: Mapping[str, str]) -> str:
    if fields.get("token", "").strip():
        return fields["token"].strip()
    try:
        return slothpost_of(request).t.encryption.decrypt(fields["sealed"], purpose=_SEALED.format(user.id))
    except DecryptionFailed:
        raise InvalidField("token", "paste the token again") from None


async def _again(
    request: HttpRequest, product_id: str, source: Source, error: Exception, *, typed: Mapping[str, str] | None = None
) -> Response[str]:
    errors: FieldErrors = {FORM: sentence_case(str(error))}
    if isinstance(error, InvalidField | InvalidInput):
        errors = errors_of(error, FIELDS)
    shown = {name: (typed or {}).get(name, "") for name in FIELDS if name not in ("token", "secret")}
    return await _page(request, product_id, source, status=422, errors=errors, typed=shown)


async def _page(
    request: HttpRequest, product_id: str, source: Source, *, status: int = 200, setup: Setup | None = None,
    errors: FieldErrors | None = None, typed: Mapping[str, str] | None = None,
    repositories: Sequence[RepositoryChoice] = (), sealed: str = "",
) -> Response[str]:  # fmt: skip
    slothpost, user = slothpost_of(request), user_of(request)
    product = await slothpost.products.get(user.id, product_id)
    found = setup or await _setup(request, product_id, source)
    projects, not_installed = [], ""
    if source == "vercel":
        try:
            projects = list(await slothpost.connections.vercel_projects(user.id))
        except NotAllowed as error:
            not_installed = str(error)
    path = found.url_path if found is not None else ""
    return await page(
        request, f"connect_{source}", "products", status,
        product=product, source=source, setup=found, url=slothpost.settings.url(path), errors=errors or {},
        typed=dict.fromkeys(FIELDS, "") | dict(typed or {}), repositories=repositories, sealed=sealed,
        projects=projects, not_installed=not_installed, is_local=_is_local(slothpost.settings),
        has_integration=slothpost.settings.sources.vercel_integration_slug is not None,
    )  # fmt: skip


def _is_local(settings: Settings) -> bool:
    """Tell whether the sources cannot reach this installation. Those of a demo are on the same machine."""
    return settings.demo is None and settings.host in LOCAL_HOSTS


async def _setup(request: HttpRequest, product_id: str, source: Source) -> Setup | None:
    listed = await slothpost_of(request).connections.list(user_of(request).id, product_id)
    return next((setup for setup in listed if setup.source == source), None)


def _source(text: str) -> Source:
    for known in SOURCES:
        if text == known:
            return known
    raise NotFound("source")


def _only(expected: Source, source: str) -> None:
    if source != expected:
        raise NotFound("page")
