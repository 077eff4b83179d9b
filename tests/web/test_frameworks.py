"""The middleware around applications in Litestar and in Django's ASGI handler; the guide's is in FastAPI."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from litestar import Litestar, Request, Response, post

from tickler import Tickler
from tickler.web import Refused, Web
from tickler.web.asgi import App

from .asking import ask

SAME = {"origin": "http://localhost", "content-type": "application/x-www-form-urlencoded"}


def in_litestar(web: Web[str]) -> App:
    @post("/notes", status_code=200)
    async def add(request: Request[object, object, object]) -> str:  # type: ignore[type-var]  # any state will do
        user = web.visitor(request.scope).require()
        return f"{user}: {(await web.form(request.scope, await request.body()))['note']}"

    def refused(request: Request[object, object, object], error: Refused) -> Response[bytes]:  # type: ignore[type-var]
        answer = web.answer(request.scope, error)
        return Response(answer.body, status_code=answer.status, headers=dict(answer.headers))

    return web.protect(Litestar([add], exception_handlers={Refused: refused}, openapi_config=None, logging_config=None))


def in_django(web: Web[str], monkeypatch: pytest.MonkeyPatch) -> App:
    async def add(request: HttpRequest) -> HttpResponse:
        user = web.visitor(request.scope).require()
        return HttpResponse(f"{user}: {(await web.form(request.scope, request.body))['note']}")

    class AnswerRefused:
        """A middleware of Django."""

        def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
            self._get_response = get_response

        def __call__(self, request: HttpRequest) -> HttpResponse:
            return self._get_response(request)

        def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
            if not isinstance(error, Refused):
                return None
            answer = web.answer(request.scope, error)
            return HttpResponse(answer.body, status=answer.status, headers=dict(answer.headers))

    urls = ModuleType("notes_urls")
    urls.__dict__.update(urlpatterns=[path("notes", add)], AnswerRefused=AnswerRefused)
    monkeypatch.setitem(__import__("sys").modules, "notes_urls", urls)
    if not settings.configured:
        settings.configure(ROOT_URLCONF="notes_urls", ALLOWED_HOSTS=["*"], LOGGING_CONFIG=None, SECRET_KEY="of no use here")
    monkeypatch.setattr(settings, "MIDDLEWARE", ["notes_urls.AnswerRefused"])
    return web.protect(get_asgi_application())


@pytest.mark.parametrize("framework", ["litestar", "django"])
@pytest.mark.parametrize("url", ["memory://"])
async def test_a_form_works_and_refusals_are_answered(
    t: Tickler, web: Web[str], framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = in_litestar(web) if framework == "litestar" else in_django(web, monkeypatch)
    cookie = (await web.sessions.cookie_for("u1")).partition(";")[0]
    session = await web.sessions.find(cookie)
    assert session is not None
    form = f"note=x&form_token={await web.forms.token(session.id)}".encode()
    added = await ask(app, "POST", "/notes", {**SAME, "cookie": cookie}, [form])
    assert (added.status, added.body) == (200, b"Ada: x")
    assert added.headers["content-security-policy"]
    assert (await ask(app, "POST", "/notes", SAME, [form])).problem["status"] == 401
    assert (await ask(app, "POST", "/notes", {**SAME, "cookie": cookie}, [b"note=x"])).problem["status"] == 403
    assert (await ask(app, "POST", "/notes", {**SAME, "cookie": cookie, "origin": "null"}, [form])).problem["status"] == 403
    long = await ask(app, "POST", "/notes", {**SAME, "cookie": cookie}, [b"x" * 700_000] * 2)
    assert long.problem["status"] == 413
