"""Formats schedules, fires and history for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from rich.console import Console

from tickler.cli.output import print_line, show_table, visible
from tickler.cli.time_format import show_upcoming, utc
from tickler.model.fire import POSTPONED, Entry, Fire, Health
from tickler.model.policy import policy_to_json
from tickler.model.schedule import Id, StoredSchedule
from tickler.model.target import HttpTarget, PythonTarget, Target
from tickler.observe.human_format import count, span
from tickler.when import MarkedInstant, in_words, marked

NOMINAL = "nominal (UTC)"
DUE = "due (UTC)"
LAST = "last result (UTC)"
FAILING = "failing"
NO_HEALTH = Health()
MIN_FIRES_WIDTH = 120  # narrower terminals get two lines per fire
MIN_SCHEDULES_WIDTH = 110  # narrower terminals get two lines per schedule
MAX_PAYLOAD_LENGTH = 400


def upcoming_of(schedule: StoredSchedule, now_ms: int, n: int) -> list[MarkedInstant]:
    """Return the next instants within the schedule's bounds; for one that is not active, those it would have."""
    if schedule.state == "active" and schedule.next_fire_at is not None:
        after_ms = schedule.next_fire_at - schedule.offset_ms() - 1
    else:
        after_ms = now_ms if schedule.starts_at is None else max(now_ms, schedule.starts_at - 1)
    return marked(schedule.when, after_ms, n, schedule.ends_at) if schedule.state != "unreadable" else []


def show_schedule(schedule: StoredSchedule, upcoming: Sequence[MarkedInstant], health: Health = NO_HEALTH) -> None:
    print_line(str(schedule.id))
    for name, value in _fields(schedule, health):
        print_line(f"  {name:<9} {value}")
    if upcoming:
        print_line("", *([] if schedule.state == "active" else [f"if it were not {schedule.state}:"]))
        show_upcoming(upcoming, schedule.tz)


def show_schedules(schedules: Sequence[StoredSchedule], health: Mapping[Id, Health], console: Console | None = None) -> None:
    """Print one line each, or two on a narrow terminal."""
    console = console or Console()
    if console.is_terminal and console.width < MIN_SCHEDULES_WIDTH:
        for each in schedules:
            due = "" if each.next_fire_at is None else f", due {utc(each.next_fire_at)} UTC"
            last = last_text(health[each.id])
            console.out(visible(f"{each.owner}/{each.key}  {state_text(each, health[each.id])}{due}"), highlight=False)
            console.out(visible(f"  {each.when} in {each.tz}{f', {last} UTC' if last else ''}"), highlight=False)
        return
    show_table(
        ["owner", "key", "when", "zone", "state", DUE, LAST],
        [
            [each.owner, each.key, str(each.when), each.tz, state_text(each, of), utc(each.next_fire_at), last_text(of)]
            for each in schedules
            for of in (health[each.id],)
        ],
        unwrapped=("state", DUE),
        console=console,
    )


def state_text(schedule: StoredSchedule, health: Health) -> str:
    """Return the state, with "failing" instead of "active" or before another state."""
    if not health.failing:
        return schedule.state
    return FAILING if schedule.state == "active" else f"{FAILING}, {schedule.state}"


def last_text(health: Health) -> str:
    """Return the last result and its time."""
    return "" if health.last is None else f"{health.last.happened} {utc(health.last.at)}"


def show_fires(fires: Sequence[Fire], console: Console | None = None) -> None:
    """Print one line each, or two on a narrow terminal."""
    console = console or Console()
    if console.is_terminal and console.width < MIN_FIRES_WIDTH:
        for each in fires:
            console.out(visible(f"{each.id}  {each.owner}/{each.key}  {utc(each.nominal_at, exactly=True)} UTC"), highlight=False)
            console.out(visible(f"  {_fire_state(each)}"), highlight=False)
        return
    show_table(
        ["fire", "owner", "key", NOMINAL, "now"],
        [[each.id, each.owner, each.key, utc(each.nominal_at, exactly=True), _fire_state(each)] for each in fires],
        unwrapped=("fire", NOMINAL),
        console=console,
    )


def show_history(entries: Sequence[Entry]) -> None:
    columns = [NOMINAL, "outcome", "attempt", "late", "answer", "detail"]
    show_table(columns, [_history_row(entry) for entry in entries], unwrapped=columns[:-1])


def target_text(target: Target | None) -> str:
    if target is None:
        return "none: your code claims it from the index"
    if isinstance(target, HttpTarget):
        headers = f" with {', '.join(target.headers)}" if target.headers else ""
        return f"{target.url}{'' if target.body == 'json' else ' (raw)'}{headers}"
    if isinstance(target, PythonTarget):
        return f"handler {target.handler}"
    return msgspec.json.encode(target).decode()


def _fields(schedule: StoredSchedule, health: Health) -> list[tuple[str, str]]:
    fields = [("when", f"{schedule.when} in {schedule.tz}"), ("", in_words(schedule.when))]
    state = state_text(schedule, health)
    fields.append(("state", state if schedule.reason is None else f"{state}: {schedule.reason}"))
    if schedule.next_fire_at is not None and (offset_ms := schedule.offset_ms()):
        fields.append(("due", f"{utc(schedule.next_fire_at)} UTC, including {span(offset_ms)} of spread"))
    fields.append(("target", target_text(schedule.target)))
    if schedule.payload is not None:
        payload = msgspec.json.encode(schedule.payload).decode()
        fields.append(("payload", payload if len(payload) <= MAX_PAYLOAD_LENGTH else f"{payload[:MAX_PAYLOAD_LENGTH]}…"))
    if policy := policy_to_json(schedule.policy):
        fields.append(("policy", msgspec.json.encode(policy).decode()))
    fields += [(name, f"{utc(at)} UTC") for name, at in (("starts", schedule.starts_at), ("ends", schedule.ends_at)) if at]
    fields.append(("version", f"{schedule.version}, changed {utc(schedule.updated_at)} UTC"))
    return fields


def _fire_state(fire: Fire) -> str:
    because = f": {fire.reason}" if fire.reason else ""
    tried = f" after attempt {fire.attempt}" if fire.attempt else ""
    if fire.worker is not None:
        return f"attempt {fire.attempt} by {fire.worker}, leased until {utc(fire.deliver_after)} UTC"
    if fire.state == "open" and fire.was_postponed:
        return f"postponed until {utc(fire.deliver_after)} UTC{tried}{because.replace(POSTPONED, '', 1)}"
    if fire.state == "open":
        return f"open, next attempt {utc(fire.deliver_after)} UTC{tried}{because}"
    return f"{fire.state}{tried}{because}"


def _history_row(entry: Entry) -> list[str]:
    detail = entry.detail or entry.answer or ""
    if entry.happened == "skipped":
        until = "" if entry.until_at in (None, entry.nominal_at) else f" to {utc(entry.until_at)}"
        detail = f"{count(entry.count or 1, 'instant')}{until}, by the {entry.rule} policy"
    elif entry.happened == "postponed" and entry.until_at is not None:
        detail = f"until {utc(entry.until_at)} UTC: {detail}"
    took = "" if entry.duration_ms is None else f" in {entry.duration_ms} ms"
    status = f"{entry.status or ''}{took}".strip()
    attempt = str(entry.attempt) if entry.attempt else ""
    return [utc(entry.nominal_at, exactly=True), entry.happened, attempt, span(max(entry.late_ms, 0)), status, detail]
