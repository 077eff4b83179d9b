"""All pages, gathered."""

from __future__ import annotations

from litestar import Router
from litestar.exceptions import HTTPException

from tickler.errors import TicklerError
from tickler.server.pages import dashboard as now
from tickler.server.pages import doctor, failed, forecast, schedule, schedules
from tickler.server.pages import login as sign_in
from tickler.server.pages.assets import asset
from tickler.server.pages.rendering import error_page

ROUTER = Router(
    path="/",
    route_handlers=[
        *now.HANDLERS,
        *forecast.HANDLERS,
        *schedules.HANDLERS,
        *schedule.HANDLERS,
        *failed.HANDLERS,
        *doctor.HANDLERS,
        *sign_in.HANDLERS,
    ],
    exception_handlers={TicklerError: error_page, HTTPException: error_page, Exception: error_page},
)
ASSETS = asset
