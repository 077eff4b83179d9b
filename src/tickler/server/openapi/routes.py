"""The routes of the API, as a table from which its description is made."""

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
from tickler.server.openapi.types import (
    Preview,
    Retried,
    RetryBody,
    ScheduleBody,
    SchedulePage,
    SchedulePatch,
    ScheduleWithHealth,
    StoredScheduleBody,
)
from tickler.server.stats import Stats

NDJSON = "application/x-ndjson"


class Route(msgspec.Struct, frozen=True):
    """A method of a path. `query` and `headers` name what `document.py` describes; `refuses` is beyond what every route may."""

    method: str
    path: str
    id: str
    says: str
    answers: Any
    status: int = 200
    query: tuple[str, ...] = ()
    body: Any = None
    refuses: tuple[int, ...] = ()
    headers: tuple[str, ...] = ()

    @property
    def tag(self) -> str:
        """By which clients group it."""
        first = self.path.removeprefix("/v1/").partition("/")[0].partition(":")[0]
        return first if first in TAGS else "service"


TAGS = {
    "schedules": "What users declare",
    "fires": "What is to be delivered, and what could not be",
    "preview": "When an expression fires",
    "service": "The whole of it: ticks, numbers, the doctor, the audit log, health",
}
_SCHEDULE = "/v1/schedules/{owner}/{key}"
_FIRE = "/v1/fires/{fire_id}"
_PAGED = ("limit", "after")

ROUTES = (
    Route("put", _SCHEDULE, "putSchedule",
          "Make or replace a schedule", StoredScheduleBody, body=ScheduleBody, refuses=(412, 415, 422),
          headers=("if-match", "if-none-match: *")),
    Route("patch", _SCHEDULE, "patchSchedule",
          "Change some fields, and keep the rest", StoredScheduleBody, body=SchedulePatch, refuses=(404, 412, 415, 422),
          headers=("if-match",)),
    Route("get", _SCHEDULE, "getSchedule",
          "A schedule as it is stored", ScheduleWithHealth, refuses=(404, 422), headers=("if-none-match",)),
    Route("delete", _SCHEDULE, "deleteSchedule",
          "Remove it, and cancel what it owes", None, 204, refuses=(404, 412, 422), headers=("if-match",)),
    Route("get", "/v1/schedules", "listSchedules",
          "Schedules by owner and key", SchedulePage, query=("owner", "key_prefix", "state", "failing", *_PAGED), refuses=(422,)),
    Route("post", f"{_SCHEDULE}/pause", "pauseSchedule", "Hold new fires", StoredScheduleBody,
          refuses=(404, 412, 422), headers=("if-match",)),
    Route("post", f"{_SCHEDULE}/resume", "resumeSchedule", "Fire again, from now on", StoredScheduleBody,
          refuses=(404, 412, 422), headers=("if-match",)),
    Route("post", f"{_SCHEDULE}/trigger", "triggerSchedule", "Fire now, out of turn", Fire, 202, refuses=(404, 422)),
    Route("get", f"{_SCHEDULE}/preview", "previewSchedule",
          "Its next instants", Preview, query=("n", "after_instant"), refuses=(404, 422)),
    Route("get", f"{_SCHEDULE}/why", "whySchedule", "Why it fired, or did not", Why, query=("at",), refuses=(422,)),
    Route("get", f"{_SCHEDULE}/fires", "historyOfSchedule",
          "What happened to its fires", HistoryPage, query=_PAGED, refuses=(422,)),
    Route("get", "/v1/preview", "preview",
          "The next instants of an expression", Preview, query=("when", "tz", "n", "after_instant", "target"), refuses=(422,)),
    Route("post", "/v1/schedules:import", "importSchedules", "Put a schedule a line", NDJSON, body=NDJSON),
    Route("get", "/v1/schedules:export", "exportSchedules", "Every schedule a line", NDJSON, query=("owner",), refuses=(422,)),
    Route("get", "/v1/fires", "listFires",
          "Open, waiting or dead fires", FirePage, query=("fire_state", "owner", "key", "limit", "after_fire"), refuses=(422,)),
    Route("get", _FIRE, "getFire", "A fire that is not settled", Fire, refuses=(404, 422)),
    Route("post", f"{_FIRE}/retry", "retryFire", "Send a dead fire again", Fire, 202, refuses=(404, 422)),
    Route("post", f"{_FIRE}/cancel", "cancelFire", "Never deliver it", Fire, refuses=(404, 422)),
    Route("post", "/v1/fires:retry", "retryFires",
          "Send dead fires again", Retried, 202, body=RetryBody, refuses=(415, 422)),
    Route("get", "/v1/tick", "tickByGet", "Deliver what is due now", Summary, query=("budget_ms",)),
    Route("post", "/v1/tick", "tick", "Deliver what is due now", Summary, query=("budget_ms",)),
    Route("get", "/v1/stats", "getStats", "How it stands, in numbers", Stats),
    Route("get", "/v1/forecast", "getForecast", "How much is to come", Forecast),
    Route("get", "/v1/doctor", "getDoctor", "What is wrong", Diagnosis, query=("deep",), refuses=(409,)),
    Route("post", "/v1/doctor:repair", "repair", "Mend what can be mended", Diagnosis),
    Route("get", "/v1/audit", "listDeeds", "Who did what", AuditPage, query=("owner", "limit", "after_deed"), refuses=(422,)),
    Route("get", "/v1/live", "live", "Attempts as they happen", "text/event-stream"),
    Route("get", "/health/live", "isLive", "The process answers", "text/plain"),
    Route("get", "/health/ready", "isReady", "The store answers", "text/plain"),
    Route("get", "/metrics", "getMetrics", "For Prometheus", "text/plain"),
)  # fmt: skip
