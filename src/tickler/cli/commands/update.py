"""`tickler update`: change fields of a schedule."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Annotated, Unpack

import typer

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, actor, usage_error
from tickler.cli.schedule_options import ScheduleOptions, bounds_of, schedule_fields, with_schedule_options
from tickler.cli.store_session import with_store
from tickler.cli.time_format import parse_instant
from tickler.cli.write_result import WriteResult, result_of, show_result
from tickler.client import Tickler
from tickler.errors import InvalidInput, NeverFires, ScheduleNotFound


class Removable(StrEnum):
    """Optional fields of a schedule, as an enum: Typer takes no repeated Literal."""

    TARGET = "target"
    PAYLOAD = "payload"
    POLICY = "policy"
    STARTS_AT = "starts_at"
    ENDS_AT = "ends_at"


WhenOption = Annotated[str | None, typer.Option(metavar="WHEN", help="Such as '0 9 * * tue', @daily, '@every 5m'.")]
ZoneOption = Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="Time zone of the schedule, such as Europe/Paris.")]
RemoveOption = Annotated[
    list[Removable] | None,
    typer.Option("--remove", metavar="FIELD", help=f"Remove a field: {', '.join(Removable)}; may be repeated."),
]
IfVersionOption = Annotated[
    int | None, typer.Option("--if-version", min=1, metavar="N", help="Change the schedule only if it has this version.")
]


@with_schedule_options
def command(
    owner: OwnerArgument,
    key: KeyArgument,
    when: WhenOption = None,
    tz: ZoneOption = None,
    remove: RemoveOption = None,
    if_version: IfVersionOption = None,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
    **options: Unpack[ScheduleOptions],
) -> None:
    """Change fields of a schedule and keep the others. JSON objects are merged into the stored ones; null removes a field."""
    fields = schedule_fields(when, tz, options)
    bounds = bounds_of(options)
    for name in remove or ():
        if name.value in fields or name.value in bounds:
            raise usage_error(f"{name.value} is both set and removed: leave one out")
        fields[name.value] = None
    if not fields and not bounds:
        raise usage_error("nothing to change: pass --when, --target, --payload or another option (see `tickler update --help`)")
    show_result(with_store(store, lambda tickler: _update(tickler, (owner, key), fields, bounds, if_version, actor(by))), as_json)


async def _update(
    tickler: Tickler, id: tuple[str, str], fields: dict[str, object], bounds: dict[str, object], version: int | None, by: str
) -> WriteResult:
    owner, key = id
    if bounds:
        zone = fields.get("tz") or await _zone_of(tickler, owner, key)
        fields = fields | {name: parse_instant(str(text), str(zone), name) for name, text in bounds.items()}
    try:
        written = await tickler.schedules.patch(owner, key, fields, version=version)
    except NeverFires as error:
        place = " ".join(map(shlex.quote, id))
        raise InvalidInput(f"{error.sentence}; to change it anyway, pause it first with `tickler pause {place}`") from None
    if written.is_changed:
        detail = f"{', '.join(sorted(fields))}: version {written.schedule.version}"
        await tickler.audit.record(by, "patched", owner=owner, key=key, detail=detail)
    return result_of(tickler, written)


async def _zone_of(tickler: Tickler, owner: str, key: str) -> str:
    """Return the zone for times without an offset."""
    stored = await tickler.schedules.get(owner, key)
    if stored is None:
        raise ScheduleNotFound(owner, key)
    return stored.tz
