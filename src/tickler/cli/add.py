"""`tickler add`: put a schedule."""

from __future__ import annotations

import shlex
from typing import Annotated, NamedTuple

import typer

from tickler.cli.moments import read_moment, upcoming_json
from tickler.cli.options import FLAG, ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, ZoneOption, misused, named
from tickler.cli.output import answer, remark
from tickler.cli.session import on_store
from tickler.cli.shown import show_schedule, upcoming_of
from tickler.errors import InvalidInput, InvalidSchedule, VersionConflict
from tickler.policy import Delivery, Missed, Overlap
from tickler.schedule import Schedule
from tickler.schedule_json import schedule_from_json, stored_to_json
from tickler.schedules import Written
from tickler.strict_json import read_json
from tickler.tickler import Tickler
from tickler.when import when_from_json

SHOWN = 5

WhenArgument = Annotated[
    str, typer.Argument(metavar="WHEN", help="Such as '0 9 * * tue', @daily, '@every 5m', 'at(2035-01-01T09:00:00)'.")
]
TargetOption = Annotated[str | None, typer.Option(metavar="URL", help="Where its fires go; or a target as JSON.")]
HandlerOption = Annotated[str | None, typer.Option(metavar="NAME", help="Or the handler that a worker registered for them.")]
PayloadOption = Annotated[str | None, typer.Option(metavar="JSON", help="What is sent along.")]
PolicyOption = Annotated[str | None, typer.Option(metavar="JSON", help="How its fires are treated, all at once.")]
DeliveryOption = Annotated[Delivery | None, typer.Option(help="How often a fire is delivered at worst.")]
MissedOption = Annotated[Missed | None, typer.Option(help="What becomes of instants that were missed.")]
OverlapOption = Annotated[Overlap | None, typer.Option(help="What to do while the fire before is still open.")]
SpreadOption = Annotated[float | None, typer.Option(metavar="SECONDS", help="Move its fires by up to this.")]
GraceOption = Annotated[float | None, typer.Option(metavar="SECONDS", help="With --missed skip: how late is not missed yet.")]
CatchupOption = Annotated[int | None, typer.Option("--max-catchup", help="With --missed all: how many at once.")]
AttemptsOption = Annotated[int | None, typer.Option(help="How often a fire is tried.")]
TimeoutOption = Annotated[float | None, typer.Option(metavar="SECONDS", help="How long an attempt may take.")]
StartsOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="None before this: ISO 8601, in its zone or with an offset.")
]
EndsOption = Annotated[str | None, typer.Option(metavar="TIME", help="None after this.")]
DeleteAfterOption = Annotated[
    bool | None, typer.Option("--delete-after/--keep-after", help="Whether it goes once it is finished and delivered.")
]
PausedOption = Annotated[bool, typer.Option("--paused", metavar=FLAG, help="Keep it asleep.")]
IfVersionOption = Annotated[
    int | None, typer.Option("--if-version", min=0, metavar="N", help="Only if it is at this version; 0: if there is none.")
]
ReplaceOption = Annotated[
    bool, typer.Option("--replace", metavar=FLAG, help="In place of the one that is there, with all it has.")
]


def command(
    owner: OwnerArgument,
    key: KeyArgument,
    when: WhenArgument,
    tz: ZoneOption = None,
    target: TargetOption = None,
    handler: HandlerOption = None,
    payload: PayloadOption = None,
    policy: PolicyOption = None,
    delivery: DeliveryOption = None,
    missed: MissedOption = None,
    overlap: OverlapOption = None,
    spread: SpreadOption = None,
    grace: GraceOption = None,
    max_catchup: CatchupOption = None,
    attempts: AttemptsOption = None,
    timeout: TimeoutOption = None,
    starts_at: StartsOption = None,
    ends_at: EndsOption = None,
    delete_after: DeleteAfterOption = None,
    paused: PausedOption = False,
    replace: ReplaceOption = False,
    if_version: IfVersionOption = None,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a new schedule, and show its next fires. One that is there is replaced with --replace or --if-version only."""
    single = {
        "delivery": delivery,
        "missed": missed,
        "overlap": overlap,
        "spread": spread,
        "grace": grace,
        "max_catchup": max_catchup,
        "attempts": attempts,
        "timeout": timeout,
    }
    given_when = when_of(when)
    zone = tz or when_from_json(given_when).tz
    schedule = schedule_from_json(
        {
            "owner": owner,
            "key": key,
            "when": given_when,
            "tz": tz,
            "target": target_of(target, handler),
            "payload": None if payload is None else json_of("payload", payload),
            "policy": policy_of(policy, {name: value for name, value in single.items() if value is not None}),
            "starts_at": None if starts_at is None else read_moment(starts_at, zone, "starts_at"),
            "ends_at": None if ends_at is None else read_moment(ends_at, zone, "ends_at"),
            "enabled": not paused,
        }
        | ({} if delete_after is None else {"delete_after": delete_after})
    )
    is_refused = not replace and if_version is None
    version = 0 if is_refused else if_version
    put = on_store(store, lambda tickler: _put(tickler, schedule, version, is_refused, named(by)), create=True)
    show_written(put, as_json)


class Put(NamedTuple):
    """What was written, when, and what a person should know of it."""

    written: Written
    now_ms: int
    warnings: list[str]


def show_written(put: Put, as_json: bool) -> None:
    """The schedule as it is now, its next fires, and what was taken from it."""
    stored, removed = put.written.schedule, put.written.removed
    upcoming = upcoming_of(stored, put.now_ms, SHOWN)
    if as_json:
        more = {"warnings": put.warnings} if put.warnings else {}
        answer(stored_to_json(stored) | {"upcoming": upcoming_json(upcoming), "removed": removed} | more)
        return
    show_schedule(stored, upcoming)
    if removed:
        remark(f"tickler: {stored.id} had before, and has no longer: {', '.join(removed)}")
    for warning in put.warnings:
        remark(f"warning: {warning}")


async def _put(tickler: Tickler, schedule: Schedule, version: int | None, is_refused: bool, by: str) -> Put:
    try:
        written = await tickler.schedules.write(schedule, version=version)
    except VersionConflict as conflict:
        if not is_refused:
            raise
        place = " ".join(map(shlex.quote, schedule.id))
        raise InvalidInput(
            f"{schedule.id} is there already, at version {conflict.found}: change a part of it with `tickler update {place} …`, "
            "or pass --replace to put this in its place"
        ) from None
    await tickler.audit.note(by, "put", owner=schedule.owner, key=schedule.key, detail=f"version {written.schedule.version}")
    return Put(written, tickler.now_ms(), tickler.warnings(written.schedule.target))


def when_of(text: str) -> object:
    return json_of("when", text) if text.lstrip().startswith("{") else text


def target_of(target: str | None, handler: str | None) -> object:
    if target is not None and handler is not None:
        raise misused("a schedule has one target: pass --target or --handler, not both")
    if handler is not None:
        return {"type": "python", "handler": handler}
    return json_of("target", target) if target is not None and target.lstrip().startswith("{") else target


def policy_of(text: str | None, single: dict[str, object]) -> object:
    """What is said by an option of its own goes before what the JSON says."""
    fields = {} if text is None else json_of("policy", text)
    return {**fields, **single} if isinstance(fields, dict) else fields


def json_of(name: str, text: str) -> object:
    try:
        value: object = read_json(text.encode("utf-8", "surrogateescape"))
    except InvalidInput as error:
        raise InvalidSchedule(name, str(error)) from None
    return value
