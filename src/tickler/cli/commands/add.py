"""`tickler add`: create a schedule."""

from __future__ import annotations

import shlex
from typing import Annotated, Unpack

import typer

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, ZoneOption, actor, flag
from tickler.cli.schedule_options import ScheduleOptions, bounds_of, schedule_fields, with_schedule_options
from tickler.cli.store_session import with_store
from tickler.cli.time_format import parse_instant
from tickler.cli.write_result import WriteResult, result_of, show_result
from tickler.client import Tickler
from tickler.errors import InvalidInput, NeverFires, VersionConflict
from tickler.model.schedule import Schedule
from tickler.model.schedule_json import schedule_from_json
from tickler.when import when_from_json

WhenArgument = Annotated[
    str, typer.Argument(metavar="WHEN", help="Such as '0 9 * * tue', @daily, '@every 5m' or 'at(2035-01-01T09:00:00)'.")
]
PausedOption = Annotated[bool, flag("--paused", help="Create it paused.")]
IfVersionOption = Annotated[
    int | None, typer.Option("--if-version", min=0, metavar="N", help="Replace this version only; 0 means create only.")
]
ReplaceOption = Annotated[bool, flag("--replace", help="Replace the schedule if it exists.")]


@with_schedule_options
def command(
    owner: OwnerArgument,
    key: KeyArgument,
    when: WhenArgument,
    tz: ZoneOption = None,
    paused: PausedOption = False,
    replace: ReplaceOption = False,
    if_version: IfVersionOption = None,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
    **options: Unpack[ScheduleOptions],
) -> None:
    """Create a schedule and show its next fires. An existing one is replaced only with --replace or --if-version."""
    fields = schedule_fields(when, tz, options)
    zone = tz or when_from_json(fields["when"]).tz
    bounds = {name: parse_instant(str(text), zone, name) for name, text in bounds_of(options).items()}
    schedule = schedule_from_json({"owner": owner, "key": key, "enabled": not paused} | fields | bounds)
    create_only = not replace and if_version is None
    version = 0 if create_only else if_version
    result = with_store(store, lambda tickler: _put(tickler, schedule, version, create_only, actor(by)), create=True)
    show_result(result, as_json)


async def _put(tickler: Tickler, schedule: Schedule, version: int | None, create_only: bool, by: str) -> WriteResult:
    try:
        written = await tickler.schedules.write(schedule, version=version)
    except NeverFires as error:
        raise InvalidInput(f"{error.sentence}; to store it anyway, add it with --paused") from None
    except VersionConflict as conflict:
        if not create_only:
            raise
        place = " ".join(map(shlex.quote, schedule.id))
        raise InvalidInput(
            f"{schedule.id} already exists, at version {conflict.found}: change it with `tickler update {place} …`, "
            "or pass --replace to replace it"
        ) from None
    await tickler.audit.record(by, "put", owner=schedule.owner, key=schedule.key, detail=f"version {written.schedule.version}")
    return result_of(tickler, written)
