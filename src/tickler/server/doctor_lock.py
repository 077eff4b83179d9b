"""The doctor that looks at everything: one at a time, since each walks over the whole store."""

from __future__ import annotations

from tickler.observe.diagnosis import Diagnosis
from tickler.server.audit_log import record
from tickler.server.context import HttpRequest, service_of
from tickler.server.problems import Refused


async def examine(request: HttpRequest, *, repair: bool = False) -> Diagnosis:
    service = service_of(request)
    if service.is_examined:
        raise Refused(409, "everything is being looked at already: wait until that is done", headers={"retry-after": "10"})
    service.is_examined = True
    try:
        return await service.tickler.doctor(deep=True, repair=repair)
    finally:
        service.is_examined = False


async def repair_all(request: HttpRequest) -> Diagnosis:
    """Mend what can be mended. The audit log tells of it where something was."""
    diagnosis = await examine(request, repair=True)
    if diagnosis.repaired:
        mended = ", ".join(f"{found.check}: {found.repaired:,}" for found in diagnosis.findings if found.repaired)
        await record(request, "repaired", detail=mended)
    return diagnosis
