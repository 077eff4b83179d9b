"""`tickler update`: change part of a schedule, and keep the rest."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Annotated

import typer

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, misused, named
from tickler.cli.schedule_options import (
    AttemptsOption,
    CatchupOption,
    DeleteAfterOption,
    DeliveryOption,
    EndsOption,
    GraceOption,
    HandlerOption,
    MissedOption,
    OverlapOption,
    PayloadOption,
    PolicyOption,
    SpreadOption,
    StartsOption,
    TargetOption,
    TimeoutOption,
    given,
    schedule_fields,
)
from tickler.cli.store_session import on_store
from tickler.cli.time_format import read_moment
from tickler.cli.write_result import WriteResult, result_of, show_result
from tickler.client import Tickler
from tickler.errors import InvalidInput, NeverFires, ScheduleNotFound


class Removable(StrEnum):
    """Fields that a schedule can do without; Typer takes no Literal more than once."""

    TARGET = "target"
    PAYLOAD = "payload"
    POLICY = "policy"
    STARTS_AT = "starts_at"
    ENDS_AT = "ends_at"


WhenOption = Annotated[str | None, typer.Option(metavar="WHEN", help="Such as '0 9 * * tue', @daily, '@every 5m'.")]
ZoneOption = Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="The zone of its wall times, such as Europe/Paris.")]
RemoveOption = Annotated[
    list[Removable] | None, typer.Option("--remove", metavar="FIELD", help=f"Remove {', '.join(Removable)}; may be repeated.")
]
IfVersionOption = Annotated[
    int | None, typer.Option("--if-version", min=1, metavar="N", help="Change the schedule only if it has this version.")
]


def command(
    owner: OwnerArgument,
    key: KeyArgument,
    when: WhenOption = None,
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
    remove: RemoveOption = None,
    if_version: IfVersionOption = None,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change what you name of a schedule, and keep the rest. JSON objects are merged into the stored ones; null removes."""
    fields = schedule_fields(
        when=when,
        tz=tz,
        target=target,
        handler=handler,
        payload=payload,
        policy=policy,
        delete_after=delete_after,
        delivery=delivery,
        missed=missed,
        overlap=overlap,
        spread=spread,
        grace=grace,
        max_catchup=max_catchup,
        attempts=attempts,
        timeout=timeout,
    )
    bounds = given(starts_at=starts_at, ends_at=ends_at)
    for name in remove or ():
        if name.value in fields or name.value in bounds:
            raise misused(f"{name.value} is both given and removed: leave one of them out")
        fields[name.value] = None
    if not fields and not bounds:
        raise misused("nothing to change: pass --when, --target, --payload or another option of `tickler update --help`")
    show_result(on_store(store, lambda tickler: _update(tickler, (owner, key), fields, bounds, if_version, named(by))), as_json)


async def _update(
    tickler: Tickler, id: tuple[str, str], fields: dict[str, object], bounds: dict[str, object], version: int | None, by: str
) -> WriteResult:
    owner, key = id
    if bounds:
        zone = fields.get("tz") or await _zone_of(tickler, owner, key)
        fields = fields | {name: read_moment(str(text), str(zone), name) for name, text in bounds.items()}
    try:
        written = await tickler.schedules.patch(owner, key, fields, version=version)
    except NeverFires as error:
        place = " ".join(map(shlex.quote, id))
        raise InvalidInput(f"{error.sentence}; to change it all the same, pause it first with `tickler pause {place}`") from None
    if written.is_changed:
        detail = f"{', '.join(sorted(fields))}: version {written.schedule.version}"
        await tickler.audit.record(by, "patched", owner=owner, key=key, detail=detail)
    return result_of(tickler, written)


async def _zone_of(tickler: Tickler, owner: str, key: str) -> str:
    """On whose wall clock a time without an offset is read."""
    stored = await tickler.schedules.get(owner, key)
    if stored is None:
        raise ScheduleNotFound(owner, key)
    return stored.tz
