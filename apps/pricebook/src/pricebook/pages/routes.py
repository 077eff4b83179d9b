"""The routes of the pages for people."""

from __future__ import annotations

from typing import Any

from litestar import Router

from pricebook.pages import sign_in, stores
from pricebook.pages.rendering import only_sessions

_MODULES = (stores, sign_in)

PAGE_ROUTES: list[Any] = [
    Router("/", route_handlers=[each for module in _MODULES for each in module.HANDLERS], before_request=only_sessions)
]
