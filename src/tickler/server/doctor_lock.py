"""Runs the deep doctor, one at a time, since each run scans the whole store."""

from __future__ import annotations

from tickler.observe.diagnosis import Diagnosis
from tickler.server.audit_log import record
from tickler.server.context import HttpRequest, context_of
from tickler.web.problems import Refused


async def examine(request: HttpRequest, *, repair: bool = False) -> Diagnosis:
    context = context_of(request)
    if context.deep_doctor_runs:
        raise Refused(409, "a deep check is already running: wait until it is done", headers={"retry-after": "10"})
    context.deep_doctor_runs = True
    try:
        return await context.tickler.doctor(deep=True, repair=repair)
    finally:
        context.deep_doctor_runs = False


async def repair_all(request: HttpRequest) -> Diagnosis:
    """Repair what can be repaired, and record it in the audit log if anything was."""
    diagnosis = await examine(request, repair=True)
    if diagnosis.repaired:
        repaired = ", ".join(f"{found.check}: {found.repaired:,}" for found in diagnosis.findings if found.repaired)
        await record(request, "repaired", detail=repaired)
    return diagnosis
