"""`tickler send`: deliver once."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import ByOption, JsonOption, StoreOption, ZoneOption, actor, usage_error
from tickler.cli.output import print_result
from tickler.cli.schedule_options import read_json_option, read_target_options
from tickler.cli.store_session import with_store
from tickler.cli.time_format import parse_instant, utc
from tickler.client import Tickler
from tickler.model.policy import DEFAULT_POLICY, policy_from_json
from tickler.model.target import read_target
from tickler.sends.sends import Sent

OwnerArgument = Annotated[str, typer.Argument(metavar="OWNER", help="Whom it is for: your user's id.")]
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="Name of the send, unique per owner: it is sent once.")]
TargetOption = Annotated[str | None, typer.Option("--target", metavar="URL", help="URL to POST to, or a target as JSON.")]
HandlerOption = Annotated[str | None, typer.Option("--handler", metavar="NAME", help="Python handler to call instead.")]
PayloadOption = Annotated[str | None, typer.Option("--payload", metavar="JSON", help="Payload.")]
PolicyOption = Annotated[str | None, typer.Option("--policy", metavar="JSON", help="Delivery policy.")]
AtOption = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="When: ISO 8601, with an offset or in --tz.", show_default="now")
]


def command(
    owner: OwnerArgument,
    key: KeyArgument,
    target: TargetOption = None,
    handler: HandlerOption = None,
    payload: PayloadOption = None,
    policy: PolicyOption = None,
    at: AtOption = None,
    tz: ZoneOption = None,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Deliver once, now or at an instant. The same command again sends nothing."""
    to = read_target(read_target_options(target, handler))
    if to is None:
        raise usage_error("pass --target URL or --handler NAME")
    content = None if payload is None else read_json_option("payload", payload)
    how = DEFAULT_POLICY if policy is None else policy_from_json(read_json_option("policy", policy))
    instant = None if at is None else parse_instant(at, tz or "UTC", "at")

    async def send(tickler: Tickler) -> Sent:
        sent = await tickler.send(owner, key, to, content, at=instant, policy=how)
        if sent.is_new:
            await tickler.audit.record(actor(by), "sent", owner=owner, key=key, detail=sent.fire_id)
        return sent

    sent = with_store(store, send, create=True)
    said = "queued for delivery" if sent.is_new else "was sent before; nothing was sent"
    print_result(sent, f"{owner}/{key} {said}: {sent.fire_id}, {utc(sent.nominal_at)} UTC", as_json=as_json)
