"""Options of `tickler add` and `tickler update` that define a schedule, and their JSON fields."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import usage_error
from tickler.errors import InvalidInput, InvalidSchedule
from tickler.model.policy import Delivery, Missed, Overlap
from tickler.model.strict_json import read_json

TargetOption = Annotated[str | None, typer.Option(metavar="URL", help="URL to POST each fire to, or a target as JSON.")]
HandlerOption = Annotated[str | None, typer.Option(metavar="NAME", help="Python handler to call, instead of --target.")]
PayloadOption = Annotated[str | None, typer.Option(metavar="JSON", help="Payload of each fire.")]
PolicyOption = Annotated[str | None, typer.Option(metavar="JSON", help="Delivery policy; the options below override its fields.")]
DeliveryOption = Annotated[Delivery | None, typer.Option(help="Delivery guarantee.")]
MissedOption = Annotated[Missed | None, typer.Option(help="What to do about missed fires.")]
OverlapOption = Annotated[Overlap | None, typer.Option(help="What to do while the previous fire is undelivered.")]
SpreadOption = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Delay fires by a fixed offset of up to this, to flatten peaks.")
]
GraceOption = Annotated[float | None, typer.Option(metavar="SECONDS", help="With --missed skip: how late a fire may be.")]
CatchupOption = Annotated[int | None, typer.Option("--max-catchup", help="With --missed all: maximum fires per claim.")]
AttemptsOption = Annotated[int | None, typer.Option(help="Maximum attempts per fire.")]
TimeoutOption = Annotated[float | None, typer.Option(metavar="SECONDS", help="Timeout of an attempt.")]
StartsOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="No fires before this: ISO 8601, with an offset or in the schedule's zone.")
]
EndsOption = Annotated[str | None, typer.Option(metavar="TIME", help="No fires after this.")]
DeleteAfterOption = Annotated[
    bool | None, typer.Option("--delete-after/--keep-after", help="Delete or keep the schedule after its last delivery.")
]


def schedule_fields(
    *,
    when: str | None,
    tz: str | None,
    target: str | None,
    handler: str | None,
    payload: str | None,
    policy: str | None,
    delete_after: bool | None,
    **policy_fields: object,
) -> dict[str, object]:
    """Return the JSON fields that the options set."""
    fields = given(when=None if when is None else _when(when), tz=tz, target=_target(target, handler), delete_after=delete_after)
    if payload is not None:
        fields["payload"] = _json("payload", payload)
    overrides = given(**policy_fields)
    if policy is not None or overrides:
        declared = {} if policy is None else _json("policy", policy)
        fields["policy"] = {**declared, **overrides} if isinstance(declared, dict) else declared
    return fields


def given(**options: object) -> dict[str, object]:
    return {name: value for name, value in options.items() if value is not None}


def _when(text: str) -> object:
    return _json("when", text) if text.lstrip().startswith("{") else text


def _target(target: str | None, handler: str | None) -> object:
    if target is not None and handler is not None:
        raise usage_error("a schedule has one target: pass --target or --handler, not both")
    if handler is not None:
        if "://" in handler:
            raise usage_error("--handler takes the name of a handler: pass a URL with --target")
        return {"type": "python", "handler": handler}
    return _json("target", target) if target is not None and target.lstrip().startswith("{") else target


def _json(name: str, text: str) -> object:
    try:
        value: object = read_json(text.encode("utf-8", "surrogateescape"))
    except InvalidInput as error:
        raise InvalidSchedule(name, str(error)) from None
    return value
