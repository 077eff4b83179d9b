"""Options of `tickler add` and `tickler update` that define a schedule, and their JSON fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Annotated, TypedDict, TypeVar, get_type_hints

import typer

from tickler.cli.options import usage_error
from tickler.errors import InvalidInput, InvalidSchedule
from tickler.model.policy import Delivery, Missed, Overlap, Policy
from tickler.model.strict_json import read_json

Command = TypeVar("Command", bound=Callable[..., None])


class ScheduleOptions(TypedDict):
    """The options by parameter, in the order of the help. An option that was not given is None."""

    target: Annotated[str | None, typer.Option(metavar="URL", help="URL to POST each fire to, or a target as JSON.")]
    handler: Annotated[str | None, typer.Option(metavar="NAME", help="Python handler to call, instead of --target.")]
    payload: Annotated[str | None, typer.Option(metavar="JSON", help="Payload of each fire.")]
    policy: Annotated[str | None, typer.Option(metavar="JSON", help="Delivery policy; the options below override its fields.")]
    delivery: Annotated[Delivery | None, typer.Option(help="Delivery guarantee.")]
    missed: Annotated[Missed | None, typer.Option(help="What to do about missed fires.")]
    overlap: Annotated[Overlap | None, typer.Option(help="What to do while the previous fire is undelivered.")]
    spread: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Delay fires by a fixed offset of up to this, to flatten peaks.")
    ]
    grace: Annotated[float | None, typer.Option(metavar="SECONDS", help="With --missed skip: how late a fire may be.")]
    max_catchup: Annotated[int | None, typer.Option("--max-catchup", help="With --missed all: maximum fires per claim.")]
    attempts: Annotated[int | None, typer.Option(help="Maximum attempts per fire.")]
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="Timeout of an attempt.")]
    starts_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="No fires before this: ISO 8601, with an offset or in the schedule's zone.")
    ]
    ends_at: Annotated[str | None, typer.Option(metavar="TIME", help="No fires after this.")]
    delete_after: Annotated[
        bool | None, typer.Option("--delete-after/--keep-after", help="Delete or keep the schedule after its last delivery.")
    ]


def with_schedule_options(command: Command) -> Command:
    """Show Typer the options after `tz`, in place of the parameter `**options`, which receives them."""
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    hints = get_type_hints(ScheduleOptions, include_extras=True)
    options = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=hint) for name, hint in hints.items()]
    place = list(signature.parameters).index("tz") + 1
    parameters = [*own[:place], *options, *own[place:]]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # any function may have one
    return command


def schedule_fields(when: str | None, tz: str | None, options: ScheduleOptions) -> dict[str, object]:
    """Return the JSON fields that the options set, without the bounds."""
    target = read_target_options(options["target"], options["handler"])
    fields = _given(when=None if when is None else _when(when), tz=tz, target=target, delete_after=options["delete_after"])
    if options["payload"] is not None:
        fields["payload"] = read_json_option("payload", options["payload"])
    overrides = _given(**{name: value for name, value in options.items() if name in Policy.__struct_fields__})
    if options["policy"] is not None or overrides:
        declared = {} if options["policy"] is None else read_json_option("policy", options["policy"])
        fields["policy"] = {**declared, **overrides} if isinstance(declared, dict) else declared
    return fields


def bounds_of(options: ScheduleOptions) -> dict[str, object]:
    """Return the bounds that the options set, as text: reading them needs the zone of the schedule."""
    return _given(starts_at=options["starts_at"], ends_at=options["ends_at"])


def _given(**options: object) -> dict[str, object]:
    return {name: value for name, value in options.items() if value is not None}


def _when(text: str) -> object:
    return read_json_option("when", text) if text.lstrip().startswith("{") else text


def read_target_options(target: str | None, handler: str | None) -> object:
    if target is not None and handler is not None:
        raise usage_error("a schedule has one target: pass --target or --handler, not both")
    if handler is not None:
        if "://" in handler:
            raise usage_error("--handler takes the name of a handler: pass a URL with --target")
        return {"type": "python", "handler": handler}
    return read_json_option("target", target) if target is not None and target.lstrip().startswith("{") else target


def read_json_option(name: str, text: str) -> object:
    try:
        value: object = read_json(text.encode("utf-8", "surrogateescape"))
    except InvalidInput as error:
        raise InvalidSchedule(name, str(error)) from None
    return value
