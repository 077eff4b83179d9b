"""The routes of all pages."""

from __future__ import annotations

from litestar import Router
from litestar.exceptions import HTTPException

from tickler.errors import TicklerError
from tickler.server.pages import dashboard, doctor, failed, forecast, login, schedule, schedules
from tickler.server.pages.assets import asset
from tickler.server.pages.rendering import error_page

ROUTER = Router(
    path="/",
    route_handlers=[
        *dashboard.HANDLERS,
        *forecast.HANDLERS,
        *schedules.HANDLERS,
        *schedule.HANDLERS,
        *failed.HANDLERS,
        *doctor.HANDLERS,
        *login.HANDLERS,
    ],
    exception_handlers={TicklerError: error_page, HTTPException: error_page, Exception: error_page},
)
ASSETS = asset
