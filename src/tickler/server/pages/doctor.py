"""*Doctor*: what is wrong, how to mend it, and a button that does."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post

from tickler.observe.doctor import PASSED_MESSAGES
from tickler.observe.human_format import count
from tickler.server.context import HttpRequest, service_of
from tickler.server.doctor_lock import examine, repair_all
from tickler.server.pages.rendering import form_of, page


@get("/doctor", opt={"scope": "read", "all_owners": True})
async def doctor(request: HttpRequest) -> Response[str]:
    """A few quick looks; the button looks at everything."""
    diagnosis = await service_of(request).tickler.doctor()
    return await page(request, "doctor", "doctor", diagnosis=diagnosis, shown=PASSED_MESSAGES)


@post("/doctor/check", opt={"scope": "operate", "all_owners": True}, status_code=200)
async def check(request: HttpRequest) -> Response[Any]:
    await form_of(request)
    diagnosis = await examine(request)
    return await page(request, "doctor", "doctor", diagnosis=diagnosis, shown=PASSED_MESSAGES)


@post("/doctor/repair", opt={"scope": "operate", "all_owners": True}, status_code=200)
async def repair(request: HttpRequest) -> Response[Any]:
    await form_of(request)
    diagnosis = await repair_all(request)
    said = f"{count(diagnosis.repaired, 'thing')} repaired." if diagnosis.repaired else "There was nothing to repair."
    return await page(request, "doctor", "doctor", diagnosis=diagnosis, shown=PASSED_MESSAGES, said=said)


HANDLERS = [doctor, check, repair]
