"""The routes of the API, as a table from which the OpenAPI document is made."""

from __future__ import annotations

from typing import Any

import msgspec

from tickler.access.audit_log import AuditPage
from tickler.deliver.summary import Summary
from tickler.fires.fires import FirePage, HistoryPage
from tickler.model.fire import Fire
from tickler.observe.diagnosis import Diagnosis
from tickler.observe.forecast import Forecast
from tickler.observe.why import Why
from tickler.sends.sends import Sent
from tickler.server.json_body import NDJSON
from tickler.server.openapi import types
from tickler.server.stats import Stats


class Route(msgspec.Struct, frozen=True):
    """An operation. `query` and `headers` name entries of `document.py`; `errors` are statuses beyond those of every route."""

    method: str
    path: str
    id: str
    summary: str
    response: Any
    status: int = 200
    query: tuple[str, ...] = ()
    body: Any = None
    errors: tuple[int, ...] = ()
    headers: tuple[str, ...] = ()

    @property
    def tag(self) -> str:
        """The group of the operation in clients."""
        first = self.path.removeprefix("/v1/").partition("/")[0].partition(":")[0]
        return first if first in TAGS else "service"


TAGS = {
    "schedules": "Schedules",
    "send": "Single deliveries, made once for each owner and key",
    "fires": "Open, waiting and dead fires",
    "preview": "Preview of expressions",
    "service": "The service: ticks, stats, doctor, audit log, health",
}
_SCHEDULE = "/v1/schedules/{owner}/{key}"
_FIRE = "/v1/fires/{fire_id}"
_PAGED = ("limit", "after")

ROUTES = (
    Route("put", _SCHEDULE, "putSchedule",
          "Create or replace a schedule", types.StoredScheduleBody, body=types.ScheduleBody, errors=(412, 415, 422),
          headers=("if-match", "if-none-match: *")),
    Route("patch", _SCHEDULE, "patchSchedule",
          "Change some fields of a schedule", types.StoredScheduleBody, body=types.SchedulePatch, errors=(404, 412, 415, 422),
          headers=("if-match",)),
    Route("get", _SCHEDULE, "getSchedule",
          "Get a schedule", types.ScheduleWithHealth, errors=(404, 422), headers=("if-none-match",)),
    Route("delete", _SCHEDULE, "deleteSchedule",
          "Delete a schedule, and cancel its undelivered fires", None, 204, errors=(404, 412, 422), headers=("if-match",)),
    Route("get", "/v1/schedules", "listSchedules",
          "List schedules", types.SchedulePage, query=("owner", "key_prefix", "state", "failing", *_PAGED), errors=(422,)),
    Route("post", f"{_SCHEDULE}/pause", "pauseSchedule", "Pause a schedule", types.StoredScheduleBody,
          errors=(404, 412, 422), headers=("if-match",)),
    Route("post", f"{_SCHEDULE}/resume", "resumeSchedule", "Resume a schedule", types.StoredScheduleBody,
          errors=(404, 412, 422), headers=("if-match",)),
    Route("post", f"{_SCHEDULE}/trigger", "triggerSchedule", "Fire a schedule now", Fire, 202, errors=(404, 422)),
    Route("get", f"{_SCHEDULE}/preview", "previewSchedule",
          "Preview a schedule", types.Preview, query=("n", "after_instant"), errors=(404, 422)),
    Route("get", f"{_SCHEDULE}/why", "whySchedule", "Explain why a schedule fired or did not", Why, query=("at",), errors=(422,)),
    Route("get", f"{_SCHEDULE}/fires", "historyOfSchedule",
          "List the history of a schedule", HistoryPage, query=_PAGED, errors=(422,)),
    Route("get", "/v1/preview", "preview",
          "Preview an expression", types.Preview, query=("when", "tz", "n", "after_instant", "target"), errors=(422,)),
    Route("post", "/v1/schedules:import", "importSchedules", "Import schedules", NDJSON, body=NDJSON),
    Route("get", "/v1/schedules:export", "exportSchedules", "Export schedules", NDJSON, query=("owner",), errors=(422,)),
    Route("post", "/v1/send/{owner}/{key}", "send",
          "Deliver once, now or at an instant", Sent, 202, body=types.SendBody, errors=(404, 409, 415, 422)),
    Route("get", "/v1/fires", "listFires",
          "List unsettled or dead fires", FirePage, query=("fire_state", "owner", "key", "limit", "after_fire"), errors=(422,)),
    Route("get", _FIRE, "getFire", "Get an unsettled or dead fire", Fire, errors=(404, 422)),
    Route("post", f"{_FIRE}/retry", "retryFire", "Retry a dead fire", Fire, 202, errors=(404, 422)),
    Route("post", f"{_FIRE}/cancel", "cancelFire", "Cancel a fire", Fire, errors=(404, 422)),
    Route("post", "/v1/fires:retry", "retryFires",
          "Retry dead fires", types.RetryResult, 202, body=types.RetryBody, errors=(415, 422)),
    Route("get", "/v1/tick", "tickByGet", "Deliver what is due now", Summary, query=("budget_ms",)),
    Route("post", "/v1/tick", "tick", "Deliver what is due now", Summary, query=("budget_ms",)),
    Route("get", "/v1/stats", "getStats", "Get counts of the current state", Stats),
    Route("get", "/v1/forecast", "getForecast", "Get the number of fires to come", Forecast),
    Route("get", "/v1/doctor", "getDoctor", "Check the store and workers", Diagnosis, query=("deep",), errors=(409,)),
    Route("post", "/v1/doctor:repair", "repair", "Check everything, and repair what can be repaired", Diagnosis),
    Route("get", "/v1/audit", "listAuditEntries",
          "List audit entries", AuditPage, query=("owner", "limit", "after_audit_entry"), errors=(422,)),
    Route("get", "/v1/live", "streamEvents", "Stream attempts and stats", "text/event-stream"),
    Route("get", "/health/live", "isLive", "Check that the process answers", "text/plain"),
    Route("get", "/health/ready", "isReady", "Check that the store answers", "text/plain"),
    Route("get", "/metrics", "getMetrics", "Get metrics for Prometheus", "text/plain"),
)  # fmt: skip
