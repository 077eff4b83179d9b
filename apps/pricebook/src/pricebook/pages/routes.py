"""The routes of the pages for people."""

from __future__ import annotations

from typing import Any

from litestar import Router

from pricebook.pages import audit, change_set_list, change_sets, home, products, sign_in, stores, uploads
from pricebook.pages.rendering import only_sessions

_MODULES = (home, stores, products, change_set_list, change_sets, uploads, audit, sign_in)

PAGE_ROUTES: list[Any] = [
    Router("/", route_handlers=[each for module in _MODULES for each in module.HANDLERS], before_request=only_sessions)
]
