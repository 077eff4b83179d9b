"""*Doctor*: problems, their remedies, and a button that repairs them."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post

from tickler.observe.doctor import PASSED_MESSAGES
from tickler.observe.human_format import count
from tickler.server.context import HttpRequest, context_of
from tickler.server.doctor_lock import examine, repair_all
from tickler.server.pages.rendering import page, read_form


@get("/doctor", opt={"scope": "read", "all_owners": True})
async def doctor(request: HttpRequest) -> Response[str]:
    """Run the quick checks; `check` runs all."""
    diagnosis = await context_of(request).tickler.doctor()
    return await page(request, "doctor", "doctor", diagnosis=diagnosis, shown=PASSED_MESSAGES)


@post("/doctor/check", opt={"scope": "operate", "all_owners": True}, status_code=200)
async def check(request: HttpRequest) -> Response[Any]:
    await read_form(request)
    return await page(request, "doctor", "doctor", diagnosis=await examine(request), shown=PASSED_MESSAGES)


@post("/doctor/repair", opt={"scope": "operate", "all_owners": True}, status_code=200)
async def repair(request: HttpRequest) -> Response[Any]:
    await read_form(request)
    diagnosis = await repair_all(request)
    notice = f"{count(diagnosis.repaired, 'problem')} repaired." if diagnosis.repaired else "Nothing to repair."
    return await page(request, "doctor", "doctor", diagnosis=diagnosis, shown=PASSED_MESSAGES, notice=notice)


HANDLERS = [doctor, check, repair]
